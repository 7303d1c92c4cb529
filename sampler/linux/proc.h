/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading /proc/PID, see proc(5).
 */
#ifndef SAMPLER_LINUX_PROC_H
#define SAMPLER_LINUX_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum { PROC_PATH_BYTES = 96 }; /* longest: /proc/PID/map_files/START-END */

/* "/proc/PID/NAME" in `path`, which is returned. NAME is short: not a path from a target (proc_root_path). */
const char *proc_path(char path[PROC_PATH_BYTES], pid_t pid, const char *name);

/* "/proc/self/fd/N" for a descriptor of ours: opened again by it, or where it leads. */
const char *proc_fd_path(char path[PROC_PATH_BYTES], int fd);

/* "/proc/PID/root" and `file`, an absolute path as the process sees it. False if it does not fit. */
bool proc_root_path(char *path, size_t path_bytes, pid_t pid, const char *file);

/* Opens for reading. NULL: errno says why. */
FILE *proc_open_text(pid_t pid, const char *name);

/* The beginning of a file, with a 0 at its end, in at most text_bytes. Its length or -errno; then text is
 * "". */
ssize_t proc_read(pid_t pid, const char *name, char *text, size_t text_bytes);

/* The number behind `label` ("\nVmRSS:") in the text of a status file; `missing` if it is not there. */
unsigned long long proc_status_number(
    const char *status, const char *label, int base, unsigned long long missing);

/* The path of the program that it executes, 0-terminated and cut to `path_bytes`, with " (deleted)" if the
 * kernel says so. Its length or -errno; then path is "". */
ssize_t proc_read_exe(pid_t pid, char *path, size_t path_bytes);

/* Calls `visit` for each thread that is there, until it returns something other than 0. That, 0, or -errno if
 * the process is not there. */
int proc_each_thread(pid_t pid, int (*visit)(void *context, pid_t tid), void *context);

/* The kernel appends " (deleted)" to the path of a file that is gone. A file may also have that name, and
 * then be deleted: only the last one is the kernel's. */
size_t proc_undeleted_length(const char *path);
bool proc_strip_deleted(char *path); /* true: there was one */

#endif

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

/* Writes "/proc/PID/NAME" into `path` and returns it. NAME is short: not a path from a target
 * (proc_root_path). */
const char *proc_path(char path[PROC_PATH_BYTES], pid_t pid, const char *name);

/* "/proc/self/fd/N" of our own descriptor, to open the file again or to read its path. */
const char *proc_fd_path(char path[PROC_PATH_BYTES], int fd);

/* "/proc/PID/root" and `file`, an absolute path as the process sees it. False if it does not fit. */
bool proc_root_path(char *path, size_t path_bytes, pid_t pid, const char *file);

/* Does a path mean the same file to the process and to us? It does if the process has our root folder, and
 * our mounts or those of process 1 (the machine's, if ours are a service's own). False if that is unknown. */
bool proc_shares_paths(pid_t pid);

/* Opens a file for reading. NULL with the error in errno. */
FILE *proc_open_text(pid_t pid, const char *name);

/* Is this an error of ours (no descriptor or memory was left), which says nothing about the process? */
bool proc_is_shortage(int error);

/* Room for a status file. Most lines are behind the line of the groups, and a process may be in hundreds of
 * groups. With more than some thousand groups, the lines behind are missing. */
enum { PROC_STATUS_BYTES = 32 << 10 };

/* Reads at most text_bytes - 1 bytes of the beginning of a file, and adds a NUL. Returns the length, or
 * -errno with "" in text. */
ssize_t proc_read(pid_t pid, const char *name, char *text, size_t text_bytes);

/* The number behind `label` ("\nVmRSS:") in the text of a status file, or `missing` if the label is not
 * there. */
unsigned long long proc_status_number(
    const char *status, const char *label, int base, unsigned long long missing);

/* The path of the program that the process executes, NUL-terminated and cut to `path_bytes`, with "
 * (deleted)" if the kernel appends that. Returns its length, or -errno with "" in path. */
ssize_t proc_read_exe(pid_t pid, char *path, size_t path_bytes);

/* The state of a process, as a letter of proc(5): 'R' ready to run, 'S' asleep, 'D' waiting for a disk or for
 * memory; '?' if it cannot be read. */
char proc_state(pid_t pid);

/* The name of a process, without characters that a terminal would obey; "?" if there is none. */
enum { PROC_COMM_BYTES = 32 };
void proc_read_comm(pid_t pid, char name[PROC_COMM_BYTES]);

/* Calls `visit` for each thread until it returns a value other than 0. Returns that value, 0, or -errno if
 * the process does not exist. */
int proc_each_thread(pid_t pid, int (*visit)(void *context, pid_t tid), void *context);

/* The kernel appends " (deleted)" to the path of a deleted file. A file may also have such a name and then be
 * deleted, so only the last " (deleted)" is the kernel's. */
size_t proc_undeleted_length(const char *path);
bool proc_strip_deleted(char *path); /* true: the path had the suffix */

/* A line of /proc/PID/cgroup: "7:memory:/system.slice/x.service" or "0::/..." (cgroups(7)). */
struct proc_cgroup {
	const char *controllers; /* separated by commas; no controllers: version 2 */
	size_t controllers_bytes;
	const char *path; /* begins with '/' */
	size_t path_bytes;
};

/* Pure. Finds the next valid line; *text moves behind it. False if there is none. */
bool proc_cgroup_next(const char **text, struct proc_cgroup *line);

/* Is the controller ("memory", "name=systemd") one of the line's? */
bool proc_cgroup_has(const struct proc_cgroup *line, const char *controller);

#endif

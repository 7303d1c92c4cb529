/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process names the code that it makes at run time: /tmp/perf-PID.map, below its own root and under
 * the pid that it has in its own namespace. Both are gone with the process, and its last profile is written
 * after that: so they are noted while it lives.
 */
#ifndef SAMPLER_LINUX_PERF_MAP_FILE_H
#define SAMPLER_LINUX_PERF_MAP_FILE_H

#include <stdint.h>
#include <sys/types.h>

/* A /tmp, one descriptor for all processes that have it. Not the root: a mount at /tmp leaves that when its
 * namespace ends (systemd's PrivateTmp=). */
struct perf_map_folder;

enum {
	PERF_MAP_FOLDERS_MAX = 256, /* different ones kept; of processes with others nothing is noted */
	PERF_MAP_FILES_MAX = 64,    /* files kept open for the time when they are deleted */
};

struct perf_map_file {
	struct perf_map_folder *folder; /* NULL: nothing is noted */
	pid_t pid;                      /* in its own namespace */
	uid_t uid;
	/* What was last written before is not its file but one that an earlier process with its number left.
	 * INT64_MIN: its start is not known. */
	int64_t since_unix_s;
	int fd; /* the file, if it was there already: for when its name is gone; -1: none */
};

/* Nothing is noted. */
#define PERF_MAP_FILE_UNKNOWN ((struct perf_map_file){.fd = -1})

/* Notes where the file of process PID is, or will be. 0, the caller calls perf_map_file_forget(); or -errno,
 * and *file is unknown. */
int perf_map_file_note(struct perf_map_file *file, pid_t pid);
void perf_map_file_forget(struct perf_map_file *file);

/*
 * A descriptor for reading the file, owned by the caller, or -errno; -ENOENT is the usual case. It is a
 * regular file of the process's user, or one of root's that everybody may read (-EPERM: another), not reached
 * through a symlink or a mount of its own (-EXDEV), and written since the process started (-ESTALE).
 */
int perf_map_file_open(const struct perf_map_file *file);

#endif

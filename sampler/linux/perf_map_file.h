/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file in which a process names the code that it makes at run time: /tmp/perf-PID.map, below the process'
 * own root, with its pid in its own namespace. Root and pid are gone with the process, and the last profile
 * is written after that. So they are noted while the process lives.
 */
#ifndef SAMPLER_LINUX_PERF_MAP_FILE_H
#define SAMPLER_LINUX_PERF_MAP_FILE_H

#include <stdint.h>
#include <sys/types.h>

/* A /tmp: one descriptor for all processes that have it. A descriptor of the root would not do: a mount at
 * /tmp is gone from it when its namespace ends (systemd's PrivateTmp=). */
struct perf_map_folder;

enum {
	/* different folders that are kept; nothing is noted for processes with further ones */
	PERF_MAP_FOLDERS_MAX = 256,
	PERF_MAP_FILES_MAX = 64, /* files that are kept open, for the time after they are deleted */
};

struct perf_map_file {
	struct perf_map_folder *folder; /* NULL: nothing is noted */
	pid_t pid;                      /* in its own namespace */
	uid_t uid;
	/* A file last written before this time is not the process' own: an earlier process with the same pid
	 * left it. INT64_MIN if the start is unknown. */
	int64_t since_unix_s;
	int fd; /* the file if it existed already, for the time after its name is gone; -1: none */
};

/* An empty note. */
#define PERF_MAP_FILE_UNKNOWN ((struct perf_map_file){.fd = -1})

/* Notes where the file of process PID is or will be. Returns 0, and the caller calls perf_map_file_forget();
 * or -errno, and *file is empty. */
int perf_map_file_note(struct perf_map_file *file, pid_t pid);
void perf_map_file_forget(struct perf_map_file *file);

/*
 * Opens the file for reading. Returns a descriptor, which the caller closes, or -errno (usually -ENOENT). The
 * file must be a regular file of the process' user, or a file of root's that everybody may read (else
 * -EPERM); not be reached through a symlink or a mount of its own (else -EXDEV); and have been written since
 * the process started (else -ESTALE).
 */
int perf_map_file_open(const struct perf_map_file *file);

#endif

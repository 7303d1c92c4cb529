/* SPDX-License-Identifier: Apache-2.0 */
/* The files in which a process names the code that it makes at run time: perf-PID.map and jit-PID.dump. */
#ifndef SAMPLER_LINUX_JIT_FILES_H
#define SAMPLER_LINUX_JIT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * ---- /tmp/perf-PID.map
 *
 * The file is below the process' own root, with its pid in its own namespace. Root and pid are gone with the
 * process, and the last profile is written after that. So they are noted while the process lives.
 */

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

/*
 * ---- jit-PID.dump
 *
 * The writer chooses the folder (/tmp, the working folder, ~/.debug/jit/...), and maps a page of the file,
 * executable, to show perf where the file is. The mapping is gone with the process, and the last profile is
 * written after that. So the file is kept open.
 */

enum { JITDUMP_FILES_MAX = 64 }; /* files that are kept open, for all processes together */

struct jitdump_file {
	int fd;       /* -1: none */
	uint64_t ino; /* of the mapping */
};

#define JITDUMP_FILE_NONE ((struct jitdump_file){.fd = -1})

/* Is the mapping with this path that of a jitdump? Pure. */
bool jitdump_file_is_name(const char *path);

/*
 * Opens the file that process PID has mapped from PATH (as the process sees it), with inode INO. The file
 * must be a regular file of the process' user, or a file of root's that everybody may read (else -EPERM), and
 * must have the inode (else -ESTALE). Returns 0, and the caller calls jitdump_file_forget(); or -errno, and
 * *file is as before.
 */
int jitdump_file_note(struct jitdump_file *file, pid_t pid, const char *path, uint64_t ino);
void jitdump_file_forget(struct jitdump_file *file);

#endif

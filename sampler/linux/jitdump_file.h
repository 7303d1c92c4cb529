/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jit-PID.dump in which a process names the code that it makes at run time. The writer chooses the folder
 * (/tmp, the working folder, ~/.debug/jit/...), and maps a page of the file, executable, to show perf where
 * it is. The mapping is gone with the process, and the last profile is written after that. So the file is
 * kept open.
 */
#ifndef SAMPLER_LINUX_JITDUMP_FILE_H
#define SAMPLER_LINUX_JITDUMP_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jit-PID.dump in which a process names the code that it makes at run time. It is in a folder of the
 * writer's choice (/tmp, the working folder, ~/.debug/jit/...), so the writer maps a page of it, executable,
 * for perf to see: that mapping tells where it is. The mapping is gone with the process, and its last profile
 * is written after that: so the file is kept open.
 */
#ifndef SAMPLER_LINUX_JITDUMP_FILE_H
#define SAMPLER_LINUX_JITDUMP_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { JITDUMP_FILES_MAX = 64 }; /* that are kept open, of all processes */

struct jitdump_file {
	int fd;       /* -1: none */
	uint64_t ino; /* of the mapping */
};

#define JITDUMP_FILE_NONE ((struct jitdump_file){.fd = -1})

/* Is a mapping of that path one of such a file? Pure. */
bool jitdump_file_is_name(const char *path);

/*
 * Opens what process PID has mapped from PATH, as the process sees it, with inode INO. It is a regular file
 * of the process's user, or one of root's that everybody may read (-EPERM: another), with that inode
 * (-ESTALE).
 * 0, the caller calls jitdump_file_forget(); or -errno, and *file is as before.
 */
int jitdump_file_note(struct jitdump_file *file, pid_t pid, const char *path, uint64_t ino);
void jitdump_file_forget(struct jitdump_file *file);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing files atomically: under a temporary name in the same folder, then renamed.
 *
 * A reader that watches the folder never sees half a profile, and a full disk leaves an older file of that
 * name as it was.
 */
#ifndef PPROF_CODEC_FILE_H
#define PPROF_CODEC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct folder;

enum file_flags {
	FILE_MKDIR = 1 << 0,      /* create missing folders (0777 less the umask) */
	FILE_FSYNC = 1 << 1,      /* file and folder are synced before 0 is returned */
	FILE_NO_REPLACE = 1 << 2, /* -EEXIST if the name is taken, decided in the same step as the rename */
	FILE_FOLLOW = 1 << 3,     /* the path may be a symbolic link to a device, such as /dev/stdout */
};

/*
 * Publishes data under path with mode (less the umask) and flags (enum file_flags). 0, or -errno of the
 * system call that failed (-ENOSPC, -EACCES, -EROFS, -EDQUOT...); then nothing is left behind but folders
 * that FILE_MKDIR made. Only if syncing the folder itself fails, there is an error although the file is
 * written. Beyond RLIMIT_FSIZE nothing is begun (-EFBIG): no signal ends the caller.
 *
 * A path that is a character device is written to directly (as root, renaming would replace /dev/null). Any
 * other thing that is not a regular file is refused with -EISDIR or -EINVAL.
 *
 * A symbolic link to a file is replaced, not followed. A link into /proc that leads to a file is refused
 * (-EINVAL): /dev/stdout is such a link. A link to a device is refused unless FILE_FOLLOW is set.
 *
 * With FILE_FOLLOW, /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N mean our own descriptors, and the
 * data is written to them. Set FILE_FOLLOW only for a path that the user wrote in full. In a foreign folder
 * (folder.h) FILE_FOLLOW has no effect on links, and no link on the way to the folder is followed (-ELOOP).
 */
int file_publish(const char *path, const void *data, size_t len, mode_t mode, unsigned int flags);

/* The same for a name in an open folder. FILE_MKDIR means nothing here. */
int file_publish_in(const struct folder *folder, const char *name, const void *data, size_t len, mode_t mode,
    unsigned int flags);

/* Opens the folder of a path (folder_open), makes it with FILE_MKDIR; *name is the path's last part. 0,
 * -EISDIR: there is none; or -errno. */
int file_open_folder(const char *path, const struct folder *from, unsigned int flags, struct folder *folder,
    const char **name);

/*
 * The same for a name in an open folder, with exactly this mode, whatever the umask is. The file gets exactly
 * this group, unless the group is -1. What has the name already is replaced if it is a regular file or a
 * symbolic link, else refused (-EISDIR, -EINVAL). FILE_MKDIR and FILE_FOLLOW mean nothing here.
 */
int file_publish_at(int folder_fd, const char *name, const void *data, size_t len, mode_t mode, gid_t group,
    unsigned int flags);

/* Is it the name of a temporary file of ours, which a killed process may have left? */
bool file_is_temporary(const char *name);

/*
 * Could a file be published in this folder now? A temporary file is made there and removed. 0, or -errno as
 * file_publish would return it. How much room the disk has is not asked.
 */
int file_check_folder(int folder_fd);

/*
 * The whole file in memory, for readers of profiles. On 0 the caller owns *data (free(); never NULL). -EFBIG
 * beyond max_bytes, else the error of open(2) or read(2). A path at which reading could wait for ever is
 * refused: -ESPIPE for a FIFO, -ENOTTY for a terminal. /dev/stdin, /dev/fd/N and /proc/self/fd/N mean our own
 * descriptors: a pipe or a FIFO that is open there is read to its end.
 */
int file_read(const char *path, size_t max_bytes, uint8_t **data, size_t *len);

/* The same of a regular file; no link is followed that another user may have made (folder_open()): -ELOOP. */
int file_read_straight(const char *path, size_t max_bytes, uint8_t **data, size_t *len);

/* The same for a name in a folder of our own: a regular file, no link (-ELOOP, -EINVAL). */
int file_read_at(int folder_fd, const char *name, size_t max_bytes, uint8_t **data, size_t *len);

/* Why it could not be read, in words. */
const char *file_read_error(int err);

/* Where a finished profile goes: an interface. sampler/write/sink.h has sinks into files, pipes and shared
 * memory; the daemon's store is another sink. */
struct sink {
	/* The writer's child calls it, with all of the bytes at once. Returns 0 or -errno. */
	int (*publish)(const struct sink *sink, const char *name, const void *data, size_t bytes);
	/* Opens the folder of a file that the sink has published, as file_open_folder() does. NULL: names are
	 * paths. */
	int (*open_folder)(
	    const struct sink *sink, const char *name, struct folder *folder, const char **file);
};

#endif

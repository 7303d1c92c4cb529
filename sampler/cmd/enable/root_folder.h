/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files below a folder that stands for /: symbolic links and .. cannot lead out of it (openat2(2),
 * RESOLVE_IN_ROOT), so that an image that is being built never makes us change the machine's own files.
 * Paths begin with '/'.
 */
#ifndef SAMPLER_CMD_ENABLE_ROOT_FOLDER_H
#define SAMPLER_CMD_ENABLE_ROOT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct root_folder {
	int fd;
	const char *path; /* borrowed; "" for / itself: to be printed before a path */
};

/* path NULL or "/": the machine's. Returns 0 or -errno. */
int root_folder_open(struct root_folder *root, const char *path);
void root_folder_close(struct root_folder *root);

enum { ROOT_FOLDER_FILE_BYTES_MAX = 1 << 20 };

/* Reads a whole regular file, NUL-terminated; the caller frees it. 0, -EFBIG or -errno. */
int root_folder_read(const struct root_folder *root, const char *path, char **text, size_t *length);

/* Opens a regular file for reading. Returns a descriptor or -errno (-EINVAL: not a regular file). */
int root_folder_file(const struct root_folder *root, const char *path);

/* Is it a regular file, links followed? */
bool root_folder_has(const struct root_folder *root, const char *path);

/* Where a symbolic link leads. Returns the length or -errno (-EINVAL: not a link). */
ssize_t root_folder_link(const struct root_folder *root, const char *path, char *target, size_t target_bytes);

/* Calls `visit` for each name in a folder, in no order, until it returns something else than 0. A folder that
 * is missing has no names. 0, what `visit` returned, or -errno. */
int root_folder_each(const struct root_folder *root, const char *folder,
    int (*visit)(void *context, const char *name), void *context);

/*
 * Replaces a file, mode 0644, and makes its folder if that is missing. At any time the old text or the new
 * one is there. The new one is on the disk when this returns. 0 or -errno.
 */
int root_folder_replace(
    const struct root_folder *root, const char *folder, const char *name, const char *text);

/* Removes a file, and its folder if nothing else is in it. 0 or -errno. */
int root_folder_remove(const struct root_folder *root, const char *folder, const char *name);

#endif

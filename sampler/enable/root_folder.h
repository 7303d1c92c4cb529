/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files below a folder that stands for /: symbolic links and .. cannot lead out of it (openat2(2),
 * RESOLVE_IN_ROOT), so that an image that is being built never makes us change the machine's own files.
 * Paths begin with '/'.
 */
#ifndef SAMPLER_ENABLE_ROOT_FOLDER_H
#define SAMPLER_ENABLE_ROOT_FOLDER_H

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

/* The whole of a regular file, NUL-terminated; the caller frees it. -EFBIG above the limit; -errno. */
int root_folder_read(const struct root_folder *root, const char *path, char **text, size_t *length);

/* Opens a regular file for reading; what is none is not opened: a descriptor, or -errno (-EINVAL). */
int root_folder_file(const struct root_folder *root, const char *path);

/* Is it a regular file, links followed? */
bool root_folder_has(const struct root_folder *root, const char *path);

/* Where a symbolic link leads; -EINVAL: it is none. Returns the length or -errno. */
ssize_t root_folder_link(const struct root_folder *root, const char *path, char *target, size_t target_bytes);

/* Calls `visit` for each name in a folder, in no order; none if there is no such folder. 0 or -errno. */
int root_folder_each(const struct root_folder *root, const char *folder,
    int (*visit)(void *context, const char *name), void *context);

/*
 * Writes a file so that it is there with the old text or with the new one at any time, and on the disk when
 * this returns. It keeps mode and owner if it was there, else its mode is 0644. `made` (may be NULL): the
 * folder was missing and has been made, 0755. Returns 0 or -errno.
 */
int root_folder_replace(
    const struct root_folder *root, const char *folder, const char *name, const char *text, bool *made);

/* Removes a file, and then its folder if that is empty and with_folder. 0 or -errno. */
int root_folder_remove(
    const struct root_folder *root, const char *folder, const char *name, bool with_folder);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens folders, so that no other user decides where we write.
 *
 * A folder is foreign if it belongs to a user who is neither we nor root, or lies below a foreign folder. Its
 * owner may exchange any name in it. So no symbolic link is followed in a foreign folder. Elsewhere a link
 * is followed as usual; in a folder that others may write to (/tmp) only if it is root's or ours.
 */
#ifndef PPROF_CODEC_FOLDER_H
#define PPROF_CODEC_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct stat;

struct folder {
	int fd; /* O_PATH: for the calls that end in `at` */
	bool foreign;
};

enum folder_flags {
	FOLDER_MAKE = 1 << 0,      /* make what is missing, with `mode` less the umask */
	FOLDER_MAKE_LAST = 1 << 1, /* make only the folder itself */
	FOLDER_OWN = 1 << 2,       /* -EPERM unless it is ours alone, see folder_open() */
};

/*
 * Opens `path`, from the folder `from` if it is relative (NULL: the working folder). 0, with a descriptor
 * that the caller closes; -ELOOP: a link that is not followed; -EPERM; or -errno.
 *
 * FOLDER_OWN: each folder on the way is ours or root's, and nobody but us may write to the folder itself.
 * Nothing is made below a foreign folder then. `..` is not taken behind a name in a foreign folder (-EPERM).
 */
int folder_open(
    struct folder *folder, const struct folder *from, const char *path, unsigned int flags, mode_t mode);
void folder_close(struct folder *folder);

/* To list a folder in another folder, or "." for the folder itself. No link is followed. NULL with errno if
 * that fails. */
DIR *folder_list(int folder_fd, const char *name);

/* Should a symbolic link in the folder be followed? Not if another user may exchange it. */
bool folder_may_follow(const struct folder *folder, const struct stat *link);

/*
 * The folder of our files of one kind: $VARIABLE/below, or without the variable ~/FALLBACK/below (fallback
 * may be NULL). A value that is not an absolute path is passed over (XDG Base Directory Specification), and
 * so is a path with a foreign folder on the way: su and sudo keep variables of another user. 0,
 * -ENAMETOOLONG, or -ENOENT if there is no such folder.
 */
int folder_of_user(
    const char *variable, const char *fallback, const char *below, char *path, size_t path_bytes);

#endif

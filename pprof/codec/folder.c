/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/codec/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>

enum {
	LINKS_MOST = 40, /* as the kernel */
	OPEN_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC,
};

struct walk {
	struct folder at;
	bool named; /* the folder was reached by a name, not by "/", "." and ".." alone */
	unsigned int flags, links;
	mode_t mode;
	char rest[PATH_MAX]; /* what is still to be walked */
};

/* Who owns "/" can exchange everything. In a user namespace that may be a user whom it does not know. */
static bool is_trusted(uid_t owner)
{
	struct stat root;

	return owner == 0 || owner == geteuid() || (stat("/", &root) == 0 && owner == root.st_uid);
}

static bool is_of_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Goes to the folder of that descriptor, which is the walk's from now on. */
static int enter(struct walk *walk, int fd)
{
	struct stat st;
	int err = fstat(fd, &st) ? -errno : 0;

	if (walk->at.fd >= 0)
		close(walk->at.fd);
	walk->at.fd = fd;
	if (err)
		return err;
	/* No process can exchange a name in /proc/PID. */
	if (!is_trusted(st.st_uid) && !is_of_proc(fd))
		walk->at.foreign = true;
	return walk->flags & FOLDER_OWN && walk->at.foreign ? -EPERM : 0;
}

/* In a folder that others may write to, only root's links and ours; these may be exchanged for others at any
 * moment, unless the folder is as /tmp. */
static bool may_follow(const struct folder *folder, const struct stat *link, bool *stays)
{
	struct stat st;

	if (folder->foreign || fstat(folder->fd, &st) != 0)
		return false;
	*stays = !(st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_mode & S_ISVTX;
	return !(st.st_mode & (S_IWGRP | S_IWOTH)) || is_trusted(link->st_uid);
}

bool folder_may_follow(const struct folder *folder, const struct stat *link)
{
	bool stays;

	return may_follow(folder, link, &stays) && stays;
}

/* /proc/self, /proc/PID/root: where they lead cannot be read as text. What another user's process has for its
 * root, that user has made. */
static int follow_proc(struct walk *walk, const char *name)
{
	struct stat st;
	int fd = openat(walk->at.fd, name, OPEN_FLAGS);

	if (fd < 0)
		return -errno;
	if (fstat(walk->at.fd, &st) != 0 || !is_trusted(st.st_uid))
		walk->at.foreign = true;
	return enter(walk, fd);
}

/* `fd` is the link, which is closed. What it says goes in front of the rest. */
static int follow(struct walk *walk, const char *name, int fd)
{
	char text[PATH_MAX], rest[PATH_MAX];
	struct stat st;
	ssize_t length = -1;
	int err = fstat(fd, &st) ? -errno : 0;
	bool stays; /* no matter: this descriptor is the link */

	if (!err && !S_ISLNK(st.st_mode))
		err = -ENOTDIR;
	if (!err && (++walk->links > LINKS_MOST || !may_follow(&walk->at, &st, &stays)))
		err = -ELOOP;
	if (!err && is_of_proc(fd)) {
		close(fd);
		return follow_proc(walk, name);
	}
	if (!err)
		length = readlinkat(fd, "", text, sizeof(text));
	if (!err && length <= 0)
		err = length ? -errno : -ENOENT;
	close(fd);
	if (err)
		return err;
	if (snprintf(rest, sizeof(rest), "%.*s/%s", (int)length, text, walk->rest) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(walk->rest, rest);
	return *rest == '/' ? enter(walk, open("/", OPEN_FLAGS)) : 0;
}

/* O_DIRECTORY, so that a file system is mounted there if autofs is to do so. */
static int open_here(const struct walk *walk, const char *name)
{
	int fd = openat(walk->at.fd, name, OPEN_FLAGS | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

static bool may_make(const struct walk *walk)
{
	return walk->flags & FOLDER_MAKE ||
	    (walk->flags & FOLDER_MAKE_LAST && !walk->rest[strspn(walk->rest, "/")]);
}

static int step(struct walk *walk, const char *name)
{
	int fd;

	if (!*name || strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		if (walk->at.foreign && walk->named)
			return -EPERM;
		fd = open_here(walk, name);
		return fd < 0 ? fd : enter(walk, fd);
	}
	fd = open_here(walk, name);
	if (fd == -ENOENT && may_make(walk)) {
		if (mkdirat(walk->at.fd, name, walk->mode) != 0 && errno != EEXIST)
			return -errno;
		fd = open_here(walk, name);
	}
	if (fd == -ENOTDIR || fd == -ELOOP) {
		fd = openat(walk->at.fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		return fd < 0 ? -errno : follow(walk, name, fd);
	}
	walk->named = true;
	return fd < 0 ? fd : enter(walk, fd);
}

static int begin(struct walk *walk, const struct folder *from, const char *path, unsigned int flags)
{
	int fd;

	*walk = (struct walk){.at = {-1, false}, .flags = flags};
	if (!*path)
		return -ENOENT;
	if (snprintf(walk->rest, sizeof(walk->rest), "%s", path) >= (int)sizeof(walk->rest))
		return -ENAMETOOLONG;
	if (from && *path != '/') {
		walk->at.foreign = from->foreign;
		walk->named = true;
		fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
	} else {
		fd = open(*path == '/' ? "/" : ".", OPEN_FLAGS);
	}
	return fd < 0 ? -errno : enter(walk, fd);
}

static int walk_all(struct walk *walk)
{
	char name[NAME_MAX + 1];
	int err = 0;

	while (!err && *walk->rest) {
		size_t length = strcspn(walk->rest, "/"), skip = length + strspn(walk->rest + length, "/");

		if (length >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, walk->rest, length);
		name[length] = '\0';
		memmove(walk->rest, walk->rest + skip, strlen(walk->rest + skip) + 1);
		err = step(walk, name);
	}
	return err;
}

static bool is_ours_alone(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

int folder_open(
    struct folder *folder, const struct folder *from, const char *path, unsigned int flags, mode_t mode)
{
	struct walk walk;
	int err = begin(&walk, from, path, flags);

	walk.mode = mode;
	if (!err)
		err = walk_all(&walk);
	if (!err && flags & FOLDER_OWN && !is_ours_alone(walk.at.fd))
		err = -EPERM;
	*folder = walk.at;
	if (err)
		folder_close(folder);
	return err;
}

void folder_close(struct folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	folder->fd = -1;
}

DIR *folder_list(int folder_fd, const char *name)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);

	if (!listing && fd >= 0)
		close(fd);
	return listing;
}

/* As far as it exists. */
static bool is_of_user(const char *path)
{
	struct walk walk;
	int err = *path == '/' ? begin(&walk, NULL, path, FOLDER_OWN) : -EINVAL;

	if (*path != '/')
		return false;
	if (!err)
		err = walk_all(&walk);
	folder_close(&walk.at);
	return !err || err == -ENOENT || err == -EACCES;
}

int folder_of_user(
    const char *variable, const char *fallback, const char *below, char *path, size_t path_bytes)
{
	const char *value = getenv(variable), *home = getenv("HOME");
	int length;

	if (value && is_of_user(value))
		length = snprintf(path, path_bytes, "%s%s", value, below);
	else if (fallback && home && is_of_user(home))
		length = snprintf(path, path_bytes, "%s/%s%s", home, fallback, below);
	else
		return -ENOENT;
	return length >= 0 && (size_t)length < path_bytes ? 0 : -ENAMETOOLONG;
}

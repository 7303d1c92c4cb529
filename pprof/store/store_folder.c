/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_folder.h"

#include "pprof/codec/folder.h"
#include "pprof/text/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_NAME ".lock"

enum { GROUPS_MOST = 65536, GROUP_BYTES = 64 << 10, LOCK_TRIES = 8, LOCK_NAP_MS = 2 };

static bool is_member(gid_t group)
{
	static gid_t groups[GROUPS_MOST];
	int count = getgroups(GROUPS_MOST, groups);

	for (int i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return geteuid() == 0 || getegid() == group;
}

/* Not by getgrnam(3): it may ask servers, and the daemon does not wait for servers. */
gid_t store_folder_group(void)
{
	static char buffer[GROUP_BYTES];
	struct group entry, *found;
	FILE *groups = fopen("/etc/group", "re");
	gid_t group = (gid_t)-1;

	while (groups && fgetgrent_r(groups, &entry, buffer, sizeof(buffer), &found) == 0)
		if (strcmp(found->gr_name, "heaptap") == 0 && is_member(found->gr_gid))
			group = found->gr_gid;
	if (groups)
		fclose(groups);
	return group;
}

/* Sets mode and group of a folder that was just made, whatever the umask is. */
static void set_access(int fd, gid_t group)
{
	if (group != (gid_t)-1 && fchown(fd, (uid_t)-1, group) != 0)
		return; /* only we may use the folder */
	(void)fchmod(fd, STORE_FOLDER_MODE);
}

int store_folder_open(int parent_fd, const char *name, gid_t group, bool *made)
{
	int fd, refused = 0;

	if (made) {
		*made = mkdirat(parent_fd, name, 0700) == 0;
		refused = *made || errno == EEXIST ? 0 : errno;
	}
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT && refused ? -refused : -errno;
	if (made && *made)
		set_access(fd, group);
	return fd;
}

/* The folders on the way to the store have the usual mode; the store's own folder has not. */
static int make_root(const char *path, gid_t group, bool *made)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *way = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int fd, err = way ? 0 : -ENOMEM;
	struct folder around;

	if (!err)
		err = folder_open(&around, NULL, way, FOLDER_MAKE, 0755);
	free(way);
	if (err)
		return err;
	fd = store_folder_open(around.fd, name, group, made);
	folder_close(&around);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int open_root(const char *path, gid_t group, bool *made)
{
	struct folder root;
	int fd, err = folder_open(&root, NULL, path, 0, 0);

	if (err == -ENOENT && made) {
		err = make_root(path, group, made);
		if (!err)
			err = folder_open(&root, NULL, path, 0, 0);
	}
	if (err)
		return err;
	fd = openat(root.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = -errno;
	folder_close(&root);
	return fd < 0 ? err : fd;
}

/* flock(2) has no deadline. */
static int lock_within(int fd, unsigned int wait_ms)
{
	static const struct timespec nap = {0, LOCK_NAP_MS * CLOCK_NS_PER_MS};
	const uint64_t until_ns = clock_now_ns() + (uint64_t)wait_ms * CLOCK_NS_PER_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_now_ns() >= until_ns)
			return -EWOULDBLOCK;
		(void)nanosleep(&nap, NULL);
	}
	return 0;
}

/* Opens the file to lock. Returns a descriptor or -errno. */
static int open_lock(int root_fd)
{
	int fd = openat(root_fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);

	return fd < 0 ? -errno : fd;
}

/* -ESTALE: the folder or the file has been deleted meanwhile. */
static int lock_root(struct store_lock *lock, unsigned int wait_ms)
{
	struct stat st;
	int err;

	lock->fd = open_lock(lock->root_fd);
	if (lock->fd < 0)
		return lock->fd == -ENOENT ? -ESTALE : lock->fd;
	err = lock_within(lock->fd, wait_ms);
	if (!err && fstat(lock->root_fd, &st) == 0 && st.st_nlink > 0 && fstat(lock->fd, &st) == 0 &&
	    st.st_nlink > 0)
		return 0;
	close(lock->fd);
	return err ? err : -ESTALE;
}

int store_folder_lock(
    struct store_lock *lock, const char *path, unsigned int wait_ms, gid_t group, bool *made)
{
	if (made)
		*made = false;
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		int err;

		lock->root_fd = open_root(path, group, made);
		if (lock->root_fd < 0)
			return lock->root_fd;
		err = lock_root(lock, wait_ms);
		if (!err)
			return 0;
		close(lock->root_fd);
		if (err != -ESTALE)
			return err;
	}
	return -ENOENT;
}

void store_folder_unlock(struct store_lock *lock)
{
	close(lock->fd);
	close(lock->root_fd);
}

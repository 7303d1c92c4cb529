/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/control_socket.h"

#include "pprof/codec/folder.h"
#include "sampler/core/control_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int copy_path(const char *from, char path[CONTROL_PATH_BYTES])
{
	return snprintf(path, CONTROL_PATH_BYTES, "%s", from) < CONTROL_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

/* The path that the user has named, or NULL. */
static const char *path_chosen(const char *given)
{
	const char *path = given ? given : getenv("HEAPTAP_SOCKET");

	return path && *path ? path : NULL;
}

static int path_default(uid_t uid, char path[CONTROL_PATH_BYTES])
{
	if (uid == 0)
		return copy_path(CONTROL_PATH_ROOT, path);
	int error = folder_of_user("XDG_RUNTIME_DIR", NULL, "/heaptap/control", path, CONTROL_PATH_BYTES);
	if (error != -ENOENT)
		return error;
	snprintf(path, CONTROL_PATH_BYTES, "/tmp/heaptap-%u/control", (unsigned int)uid);
	return 0;
}

int control_path_own(const char *given, uid_t uid, char path[CONTROL_PATH_BYTES])
{
	const char *chosen = path_chosen(given);

	return chosen ? copy_path(chosen, path) : path_default(uid, path);
}

size_t control_path_candidates(
    const char *given, uid_t uid, char paths[CONTROL_PATHS][CONTROL_PATH_BYTES], bool *chosen)
{
	const char *named = path_chosen(given);
	size_t count = 0;

	*chosen = named && (given || uid != 0); /* su and sudo -E leave root the variable of another user */
	if (named)
		return copy_path(named, paths[0]) == 0;
	count += path_default(uid, paths[count]) == 0;
	if (uid != 0)
		count += copy_path(CONTROL_PATH_ROOT, paths[count]) == 0;
	return count;
}

int control_path_off(const char *socket_path, char path[CONTROL_PATH_BYTES])
{
	const char *slash = strrchr(socket_path, '/');
	int folder = slash ? (int)(slash - socket_path) + 1 : 0;
	int length = snprintf(path, CONTROL_PATH_BYTES, "%.*s" CONTROL_OFF_NAME, folder, socket_path);

	return length < CONTROL_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

enum { BACKLOG = 64, CONNECT_SECONDS = 3 };

/* The address by the descriptor of the folder: so nobody can lead us elsewhere, and the path may have any
 * length. */
static void address_of(int folder_fd, const char *name, struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s", folder_fd, name);
}

static int connect_to(const struct sockaddr_un *address)
{
	const struct timeval patience = {.tv_sec = CONNECT_SECONDS};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* for connect(), which waits if the backlog is full */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return fd;
	int error = -errno;
	close(fd);
	return error;
}

int control_socket_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >= (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	return connect_to(&address);
}

/* Opens the folder, which must be our own. Makes it if it is missing, for `group` if there is one. Returns
 * a descriptor or -errno. */
static int open_folder(const char *path, gid_t group)
{
	struct folder folder;
	int fd, error = folder_open(&folder, NULL, path, FOLDER_OWN, 0);
	bool made = error == -ENOENT;

	if (made)
		error = folder_open(&folder, NULL, path, FOLDER_OWN | FOLDER_MAKE_LAST, 0700);
	if (error)
		return error;
	fd = openat(folder.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = -errno;
	folder_close(&folder);
	if (fd < 0)
		return error;
	if (made && group != CONTROL_NO_GROUP && fchown(fd, (uid_t)-1, group) == 0)
		(void)fchmod(fd, 0750);
	return fd;
}

/* May we bind this name? 0 or -errno; -EADDRINUSE if a daemon serves it. */
static int check_free(int folder_fd, const char *name)
{
	struct sockaddr_un address;
	struct stat status;

	if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	address_of(folder_fd, name, &address);
	int fd = connect_to(&address);
	if (fd >= 0)
		close(fd);
	return fd == -ECONNREFUSED || fd == -ENOENT ? 0 : -EADDRINUSE;
}

/* Binds the socket under another name first: so no client sees it before it listens and has its mode. */
static int bind_in(int folder_fd, const char *name, gid_t group)
{
	struct sockaddr_un address;
	char early[32];

	snprintf(early, sizeof(early), ".control.%d", (int)getpid());
	address_of(folder_fd, early, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)unlinkat(folder_fd, early, 0); /* a daemon that was killed may have had our pid */
	bool for_group = group != CONTROL_NO_GROUP;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    (!for_group || fchownat(folder_fd, early, (uid_t)-1, group, AT_SYMLINK_NOFOLLOW) == 0) &&
	    fchmodat(folder_fd, early, for_group ? 0660 : 0600, 0) == 0 && listen(fd, BACKLOG) == 0 &&
	    renameat(folder_fd, early, folder_fd, name) == 0)
		return fd;
	int error = -errno;
	(void)unlinkat(folder_fd, early, 0);
	close(fd);
	return error;
}

int control_socket_bind(const char *path, gid_t group)
{
	char folder[CONTROL_PATH_BYTES];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int length = slash ? (int)(slash - path) : 0;

	if (length >= (int)sizeof(folder) || strlen(name) > 64)
		return -ENAMETOOLONG;
	if (!*name)
		return -EINVAL;
	snprintf(folder, sizeof(folder), "%.*s", length, path);
	int folder_fd = open_folder(*folder ? folder : slash ? "/" : ".", group);
	if (folder_fd < 0)
		return folder_fd;
	int error = check_free(folder_fd, name);
	int fd = error ? error : bind_in(folder_fd, name, group);
	close(folder_fd);
	return fd;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/control_folder.h"

#include "pprof/codec/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

size_t control_folders(char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES], uid_t uid)
{
	size_t count = 0;

	/* what is in it has a name, too */
	if (folder_of_user("XDG_RUNTIME_DIR", NULL, "/heaptap", folders[0], CONTROL_FOLDER_BYTES - 8) == 0)
		count++;
	snprintf(folders[count++], CONTROL_FOLDER_BYTES, "/tmp/heaptap-%u", (unsigned int)uid);
	snprintf(folders[count++], CONTROL_FOLDER_BYTES, "/run/user/%u/heaptap", (unsigned int)uid);
	return count;
}

int control_folder_open(const char *folder, uid_t owner)
{
	struct stat status;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	if (fstat(fd, &status) == 0 && status.st_uid == owner && (status.st_mode & 022) == 0)
		return fd;
	close(fd);
	return -EPERM;
}

static int look_into(int (*visit)(void *context, int folder_fd, const char *folder, uid_t owner),
    void *context, const char *folder, uid_t owner)
{
	int fd = control_folder_open(folder, owner), enough = visit(context, fd, folder, owner);

	if (fd >= 0)
		close(fd);
	return enough;
}

/* Root may ask the samplers of all users. Only names that control_folders() makes count: otherwise user 7
 * could have any number of folders, "heaptap-007" and so on. */
static void look_into_others(
    int (*visit)(void *context, int folder_fd, const char *folder, uid_t owner), void *context)
{
	static const struct {
		const char *root, *before, *after;
	} places[] = {{"/tmp", "heaptap-", ""}, {"/run/user", "", "/heaptap"}};
	int enough = 0;
	for (size_t i = 0; i < 2 && !enough; i++) {
		DIR *root = opendir(places[i].root);
		const struct dirent *entry;
		const size_t before = strlen(places[i].before);

		while (root && !enough && (entry = readdir(root))) {
			char name[32], path[CONTROL_FOLDER_BYTES];

			if (strncmp(entry->d_name, places[i].before, before) != 0)
				continue;
			const unsigned int owner = (unsigned int)strtoul(entry->d_name + before, NULL, 10);
			snprintf(name, sizeof(name), "%s%u", places[i].before, owner);
			if (owner == 0 || strcmp(name, entry->d_name) != 0)
				continue;
			snprintf(path, sizeof(path), "%s/%s%s", places[i].root, name, places[i].after);
			enough = look_into(visit, context, path, owner);
		}
		if (root)
			closedir(root);
	}
}

void control_folder_each(
    int (*visit)(void *context, int folder_fd, const char *folder, uid_t owner), void *context)
{
	char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES];
	size_t count = control_folders(folders, geteuid());

	for (size_t i = 0; i < count; i++) {
		bool again = false;

		for (size_t n = 0; n < i; n++)
			again = again || strcmp(folders[n], folders[i]) == 0;
		if (!again && look_into(visit, context, folders[i], geteuid()))
			return;
	}
	if (geteuid() == 0)
		look_into_others(visit, context);
}

bool control_folder_is_socket(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && strcmp(dot, ".sock") == 0;
}

static bool serves(int fd, uid_t owner)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == owner;
}

/* `socket_fd`: O_PATH, of a socket in the folder. */
static int connect_to(int socket_fd, uid_t owner, int patience_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {patience_ms / 1000, patience_ms % 1000 * 1000};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (patience_ms ? 0 : SOCK_NONBLOCK), 0);
	int error = 0;

	if (fd < 0)
		return -errno;
	/* for connect(), which waits if the backlog is full */
	if (patience_ms)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", socket_fd);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		error = -errno;
	else if (!serves(fd, owner))
		error = -EPERM;
	if (!error)
		return fd;
	close(fd);
	return error;
}

int control_folder_connect(int folder_fd, const char *name, uid_t owner, int patience_ms)
{
	struct stat status;
	int socket_fd = openat(folder_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (socket_fd < 0)
		return -errno; /* the sampler has just ended */
	int fd = fstat(socket_fd, &status) == 0 && S_ISSOCK(status.st_mode)
	    ? connect_to(socket_fd, owner, patience_ms)
	    : -ENOENT;
	close(socket_fd);
	return fd;
}

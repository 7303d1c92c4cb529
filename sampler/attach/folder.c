/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/attach/folder.h"

#include "proto/attach_request.h"
#include "sampler/linux/proc.h"
#include "sampler/region/region_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Where a program may keep files, in the order of our preference; the last is for bare roots. */
static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", "/run", "/"};

struct folder {
	int parent_fd, fd, socket_fd;
	char name[32];
	char path[HANDED_PATH_BYTES]; /* in the target's view, ends with a slash */
};

static void close_all(const struct folder *folder)
{
	const int fds[] = {folder->parent_fd, folder->fd, folder->socket_fd};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void remove_folder(const struct folder *folder)
{
	if (folder->fd >= 0) {
		(void)unlinkat(folder->fd, ATTACH_REGION_FILE, 0);
		(void)unlinkat(folder->fd, ATTACH_LIBRARY_FILE, 0);
		(void)unlinkat(folder->parent_fd, folder->name, AT_REMOVEDIR);
	}
	close_all(folder);
}

/* The place is the target's word: its symbolic links lead nowhere out of its root. */
static int open_place(int root_fd, const char *place)
{
	struct statvfs mount;
	struct open_how how = {
	    .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root_fd, place, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	if (fstatvfs(fd, &mount) == 0 && !(mount.f_flag & (ST_NOEXEC | ST_RDONLY)))
		return fd;
	close(fd);
	return -EACCES;
}

/* One that is new, and ours: others may not write there. The target need not be our user. */
static int make(struct folder *folder, const char *place)
{
	uint64_t random;
	struct stat status;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(folder->name, sizeof(folder->name), ".heaptap-%016" PRIx64, random);
	snprintf(folder->path, sizeof(folder->path), "%s/%s/", place[1] ? place : "", folder->name);
	if (mkdirat(folder->parent_fd, folder->name, 0700) != 0)
		return -errno;
	folder->fd = openat(folder->parent_fd, folder->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder->fd < 0 || fstat(folder->fd, &status) != 0 || status.st_uid != geteuid() ||
	    fchmod(folder->fd, 0711) != 0)
		return -EPERM;
	return 0;
}

static int write_library(const struct folder *folder, int library_fd)
{
	struct stat status;
	int fd = openat(
	    folder->fd, ATTACH_LIBRARY_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int error = fd < 0 || fstat(library_fd, &status) != 0 ? -errno : 0;
	for (off_t at = 0; !error && at < status.st_size;) {
		ssize_t sent = sendfile(fd, library_fd, &at, (size_t)(status.st_size - at));
		if (sent <= 0)
			error = sent < 0 ? -errno : -EIO;
	}
	if (!error && fchmod(fd, 0755) != 0)
		error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

/* Everybody may connect, by the mask: to change the mode afterwards is to change that of what has the name by
 * then, and root of the target's container may have made it a link to a file of ours. */
static int listen_there(struct folder *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(
	    address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" ATTACH_REGION_FILE, folder->fd);
	folder->socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0111); /* of this process, which is for the folder alone */
	bool bound = folder->socket_fd >= 0 &&
	    bind(folder->socket_fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(folder->socket_fd, 4) == 0;
	int error = bound ? 0 : -errno;
	umask(mask);
	return error;
}

static int try_place(struct folder *folder, int root_fd, const char *place, int library_fd)
{
	*folder = (struct folder){.fd = -1, .socket_fd = -1};
	folder->parent_fd = open_place(root_fd, place);
	if (folder->parent_fd < 0)
		return folder->parent_fd;
	int error = make(folder, place);
	if (!error)
		error = write_library(folder, library_fd);
	if (!error)
		error = listen_there(folder);
	if (error)
		remove_folder(folder);
	return error;
}

/* The error of the first place counts where none will do. */
static int open_folder(struct folder *folder, pid_t target, int library_fd)
{
	char path[PROC_PATH_BYTES];
	int root_fd = open(proc_path(path, target, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int first = root_fd < 0 ? -errno : 0, error = first;
	for (size_t i = 0; root_fd >= 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		error = try_place(folder, root_fd, places[i], library_fd);
		if (!error)
			break;
		first = first ? first : error;
	}
	if (root_fd >= 0)
		close(root_fd);
	return error ? first : 0;
}

/* To the target alone, whoever else finds the socket. */
static void serve(int socket_fd, pid_t target, int region_fd)
{
	struct ucred peer = {.pid = 0};
	socklen_t bytes = sizeof(peer);
	int fd = accept4(socket_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid == target)
		(void)region_socket_send(fd, region_fd);
	close(fd);
}

/* In the child: until the other end of `control` is closed. */
static void keep(const struct folder *folder, int control, pid_t target, int region_fd)
{
	struct pollfd fds[] = {
	    {.fd = control, .events = POLLIN}, {.fd = folder->socket_fd, .events = POLLIN}};
	while (!fds[0].revents)
		if (poll(fds, 2, -1) > 0 && fds[1].revents)
			serve(folder->socket_fd, target, region_fd);
	remove_folder(folder);
}

/* Of the child to its parent. */
struct answer {
	int error;
	char path[HANDED_PATH_BYTES];
};

static void run_child(int control, pid_t target, int library_fd, int region_fd)
{
	struct folder folder;
	struct answer answer = {.error = open_folder(&folder, target, library_fd)};
	if (!answer.error)
		memcpy(answer.path, folder.path, sizeof(answer.path));
	bool told = send(control, &answer, sizeof(answer), MSG_NOSIGNAL) == (ssize_t)sizeof(answer);
	if (!answer.error && told)
		keep(&folder, control, target, region_fd);
	else if (!answer.error)
		remove_folder(&folder);
	_exit(EXIT_SUCCESS);
}

int folder_start(struct handed *handed, pid_t target, int library_fd, int region_fd, int cancel_fd)
{
	struct answer answer;
	int pair[2];
	*handed = (struct handed){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	handed->child = fork();
	if (handed->child == 0) {
		close(pair[0]);
		if (cancel_fd >= 0) /* the other end is to see when our parent has ended */
			close(cancel_fd);
		run_child(pair[1], target, library_fd, region_fd);
	}
	close(pair[1]);
	handed->fd = pair[0];
	int error = handed->child < 0 ? -EIO : handed_await(handed, &answer, sizeof(answer), cancel_fd);
	if (!error)
		error = answer.error;
	if (error) {
		handed_end(handed);
		return error;
	}
	snprintf(
	    handed->library_path, sizeof(handed->library_path), "%.64s" ATTACH_LIBRARY_FILE, answer.path);
	snprintf(handed->region_path, sizeof(handed->region_path), "%.64s" ATTACH_REGION_FILE, answer.path);
	return 0;
}

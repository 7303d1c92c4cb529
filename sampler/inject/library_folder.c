/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/library_folder.h"

#include "proto/attach_request.h"
#include "sampler/intake/region_socket.h"
#include "sampler/linux/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include <time.h>
#include <unistd.h>
#include <linux/openat2.h>

enum { FOLDER_MODE = 0711 };

/* Places where a program may keep files, best first. The last is for roots that have nothing else. */
static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", "/run", "/"};

struct folder {
	int parent_fd, fd, socket_fd;
	char name[32];                /* "" until it is made */
	char path[HANDED_PATH_BYTES]; /* in the target's view, ends with a slash */
};

static void close_all(const struct folder *folder)
{
	const int fds[] = {folder->parent_fd, folder->fd, folder->socket_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Removes the folder by its name only if it is empty. If the target has put another folder there, the target
 * may as well remove it. */
static void remove_folder(const struct folder *folder)
{
	if (folder->fd >= 0) {
		(void)unlinkat(folder->fd, ATTACH_REGION_FILE, 0);
		(void)unlinkat(folder->fd, ATTACH_LIBRARY_FILE, 0);
	}
	if (folder->name[0])
		(void)unlinkat(folder->parent_fd, folder->name, AT_REMOVEDIR);
	close_all(folder);
}

/* A target in its own user namespace may have mounted any folder anywhere. So we make nothing in a folder
 * where the target's user could make nothing. */
static bool is_its_place(int fd, pid_t target)
{
	char path[PROC_PATH_BYTES], text[PROC_STATUS_BYTES];
	struct stat own, other, place;
	const bool own_users = stat("/proc/self/ns/user", &own) != 0 ||
	    (stat(proc_path(path, target, "ns/user"), &other) == 0 && own.st_ino == other.st_ino &&
	        own.st_dev == other.st_dev);

	if (own_users)
		return true;
	return proc_read(target, "status", text, sizeof(text)) > 0 && fstat(fd, &place) == 0 &&
	    (place.st_mode & S_IWOTH || place.st_uid == proc_status_number(text, "\nUid:", 10, UINT64_MAX));
}

/* The place is the target's word: symbolic links must not lead out of its root. */
static int open_place(int root_fd, pid_t target, const char *place)
{
	struct statvfs mount;
	struct open_how how = {
	    .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root_fd, place, &how, sizeof(how));

	if (fd < 0)
		return -errno;
	if (fstatvfs(fd, &mount) == 0 && !(mount.f_flag & (ST_NOEXEC | ST_RDONLY)) &&
	    is_its_place(fd, target))
		return fd;
	close(fd);
	return -EACCES;
}

static bool is_empty(int folder_fd)
{
	int entries = 0;
	const int fd = fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (!folder && fd >= 0)
		close(fd);
	while (folder && readdir(folder))
		entries++;
	if (folder)
		closedir(folder);
	return entries == 2; /* "." and ".." */
}

static bool is_before(const struct statx_timestamp *one, const struct timespec *other)
{
	return one->tv_sec != other->tv_sec ? one->tv_sec < other->tv_sec
	                                    : (long)one->tv_nsec < other->tv_nsec;
}

/* Is this the folder that we have just made? The target may have put another there, by a mount or a
 * rename. */
static bool is_ours(const struct folder *folder, const struct timespec *since)
{
	const unsigned int wish = STATX_BASIC_STATS | STATX_BTIME;
	struct statx made, parent;

	return statx(folder->fd, "", AT_EMPTY_PATH, wish, &made) == 0 &&
	    statx(folder->parent_fd, "", AT_EMPTY_PATH, wish, &parent) == 0 && made.stx_uid == geteuid() &&
	    (made.stx_mode & 01777) == FOLDER_MODE && made.stx_dev_major == parent.stx_dev_major &&
	    made.stx_dev_minor == parent.stx_dev_minor &&
	    !(made.stx_mask & STATX_BTIME && is_before(&made.stx_btime, since)) && is_empty(folder->fd);
}

/* Makes a new folder of ours, in which nobody else may write: the target may be another user. The folder is
 * not touched before it is known to be ours, and no mode is ever changed: as root, we could be shown a folder
 * of root's. */
static int make(struct folder *folder, const char *place)
{
	const struct open_how how = {
	    .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
	};
	uint64_t random;
	struct timespec since;
	char name[sizeof(folder->name)];

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, sizeof(name), ".heaptap-%016" PRIx64, random);
	snprintf(folder->path, sizeof(folder->path), "%s/%s/", place[1] ? place : "", name);
	clock_gettime(CLOCK_REALTIME_COARSE, &since); /* the clock of file times */
	if (mkdirat(folder->parent_fd, name, FOLDER_MODE) != 0)
		return -errno;
	memcpy(folder->name, name, sizeof(name));
	folder->fd = (int)syscall(SYS_openat2, folder->parent_fd, name, &how, sizeof(how));
	if (folder->fd >= 0 && is_ours(folder, &since))
		return 0;
	if (folder->fd >= 0)
		close(folder->fd);
	folder->fd = -1;
	return -EPERM;
}

static int write_library(const struct folder *folder, int library_fd)
{
	struct stat status;
	int fd = openat(
	    folder->fd, ATTACH_LIBRARY_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
	int error = fd < 0 || fstat(library_fd, &status) != 0 ? -errno : 0;

	for (off_t at = 0; !error && at < status.st_size;) {
		ssize_t sent = sendfile(fd, library_fd, &at, (size_t)(status.st_size - at));

		if (sent <= 0)
			error = sent < 0 ? -errno : -EIO;
	}
	if (fd >= 0)
		close(fd);
	return error;
}

/* Everybody may connect to this socket. */
static int listen_there(struct folder *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(
	    address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" ATTACH_REGION_FILE, folder->fd);
	folder->socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool bound = folder->socket_fd >= 0 &&
	    bind(folder->socket_fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(folder->socket_fd, 4) == 0;
	return bound ? 0 : -errno;
}

static int try_place(struct folder *folder, int root_fd, pid_t target, const char *place, int library_fd)
{
	*folder = (struct folder){.fd = -1, .socket_fd = -1};
	folder->parent_fd = open_place(root_fd, target, place);
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

/* If no place will do, the error of the first place is returned. */
static int open_folder(struct folder *folder, pid_t target, int library_fd)
{
	char path[PROC_PATH_BYTES];
	int root_fd = open(proc_path(path, target, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int first = root_fd < 0 ? -errno : 0, error = first;

	for (size_t i = 0; root_fd >= 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		error = try_place(folder, root_fd, target, places[i], library_fd);
		if (!error)
			break;
		first = first ? first : error;
	}
	if (root_fd >= 0)
		close(root_fd);
	return error ? first : 0;
}

/* Sends the region to the target alone, even if others find the socket. */
static void serve(int socket_fd, pid_t target, const struct region *region)
{
	struct ucred peer = {.pid = 0};
	socklen_t bytes = sizeof(peer);
	int fd = accept4(socket_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid == target)
		(void)region_socket_send(fd, region);
	close(fd);
}

/* Runs in the child until the other end of `control` is closed. */
static void keep(const struct folder *folder, int control, pid_t target, const struct region *region)
{
	struct pollfd fds[] = {
	    {.fd = control, .events = POLLIN}, {.fd = folder->socket_fd, .events = POLLIN}};

	while (!fds[0].revents)
		if (poll(fds, 2, -1) > 0 && fds[1].revents)
			serve(folder->socket_fd, target, region);
	remove_folder(folder);
}

/* The child's answer to its parent. */
struct answer {
	int error;
	char path[HANDED_PATH_BYTES];
};

static void run_child(int control, pid_t target, int library_fd, const struct region *region)
{
	struct folder folder;

	umask(0); /* each mode is right from the beginning, and is never changed */
	struct answer answer = {.error = open_folder(&folder, target, library_fd)};
	if (!answer.error)
		memcpy(answer.path, folder.path, sizeof(answer.path));
	bool told = send(control, &answer, sizeof(answer), MSG_NOSIGNAL) == (ssize_t)sizeof(answer);
	if (!answer.error && told)
		keep(&folder, control, target, region);
	else if (!answer.error)
		remove_folder(&folder);
	_exit(EXIT_SUCCESS);
}

int library_folder_start(
    struct handed *handed, pid_t target, int library_fd, const struct region *region, int cancel_fd)
{
	struct answer answer;
	int pair[2];

	*handed = (struct handed){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	handed->child = fork();
	if (handed->child == 0) {
		close(pair[0]);
		if (cancel_fd >= 0) /* the other end must see when our parent ends */
			close(cancel_fd);
		run_child(pair[1], target, library_fd, region);
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

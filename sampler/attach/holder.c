/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/attach/holder.h"

#include "proto/attach_request.h"
#include "sampler/attach/child.h"
#include "sampler/linux/clock.h"
#include "sampler/linux/descriptor_range.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	SOCKET_FD = 3,
	ROOT_FD = ATTACH_REGION_FD + 1, /* the target's root folder */
	ANSWER_MS = 10000,
};

/* Until it has seen that its socket is closed, and has removed what it has made. */
static const uint64_t end_ns = UINT64_C(5) * CLOCK_NS_PER_S;

/* ---- the holder */

static int become(uid_t user, gid_t group)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	bool same = geteuid() == user && getuid() == user && getegid() == group;
	if (!same &&
	    (setgroups(0, NULL) != 0 || setresgid(group, group, group) != 0 ||
	        setresuid(user, user, user) != 0))
		return -errno;
	/* No more capabilities than the target, whatever it has: none. */
	if (syscall(SYS_capset, &header, none) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
		return -errno;
	return 0;
}

/* Our number in the target's /proc, whichever pid namespace that is of. */
static int find_number(void)
{
	char text[16] = "";
	ssize_t length = readlinkat(ROOT_FD, "proc/self", text, sizeof(text) - 1);
	int number = length > 0 ? atoi(text) : 0;
	close(ROOT_FD);
	return number > 0 ? number : -ENOENT;
}

int holder_main(int count, char *words[])
{
	if (count != 2)
		return EXIT_FAILURE;
	prctl(PR_SET_NAME, "heaptap-holder");
	int answer = become((uid_t)strtoul(words[0], NULL, 10), (gid_t)strtoul(words[1], NULL, 10));
	if (!answer)
		answer = find_number();
	char byte;
	if (write(SOCKET_FD, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
		return EXIT_FAILURE;
	for (ssize_t got = 1; answer > 0 && (got > 0 || (got < 0 && errno == EINTR));)
		got = read(SOCKET_FD, &byte, 1);
	return EXIT_SUCCESS;
}

/* ---- its parent */

static bool same_namespace(pid_t pid, const char *name)
{
	char path[PROC_PATH_BYTES];
	struct stat own, other;
	return stat(proc_path(path, getpid(), name), &own) == 0 &&
	    stat(proc_path(path, pid, name), &other) == 0 && own.st_ino == other.st_ino &&
	    own.st_dev == other.st_dev;
}

static int enter(pid_t pid, const char *name, int kind)
{
	char path[PROC_PATH_BYTES];
	if (same_namespace(pid, name))
		return 0;
	int fd = open(proc_path(path, pid, name), O_RDONLY | O_CLOEXEC);
	int error = fd >= 0 && setns(fd, kind) == 0 ? 0 : -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

enum { PLACES = 4 };

static void place_descriptors(const int fds[PLACES])
{
	const int to[PLACES] = {SOCKET_FD, ATTACH_LIBRARY_FD, ATTACH_REGION_FD, ROOT_FD};
	int from[PLACES];
	for (int i = 0; i < PLACES; i++) /* above the places first: one may be in the way of another */
		from[i] = fcntl(fds[i], F_DUPFD, 64);
	for (int i = 0; i < PLACES; i++)
		dup2(from[i], to[i]);
	descriptor_range_close(ROOT_FD + 1, INT_MAX);
	descriptor_range_close(0, SOCKET_FD - 1);
}

struct ids {
	uid_t user;
	gid_t group;
};

/* The ids are as they are called in the target's user namespace. */
static void execute(uid_t inner_user, gid_t inner_group)
{
	char user[16], group[16];
	snprintf(user, sizeof(user), "%u", inner_user);
	snprintf(group, sizeof(group), "%u", inner_group);
	char *words[] = {"heaptap", HOLDER_COMMAND, user, group, NULL}, *environment[] = {NULL};
	execve("/proc/self/exe", words, environment);
	_exit(EXIT_FAILURE);
}

/* The id in a user namespace, by its map; the id itself if it is in none. */
static unsigned int map_id(pid_t pid, const char *name, unsigned int id)
{
	unsigned int inner, outer, length, mapped = id;
	FILE *map = proc_open_text(pid, name);
	while (map && fscanf(map, "%u %u %u", &inner, &outer, &length) == 3)
		if (id >= outer && id - outer < length)
			mapped = inner + (id - outer);
	if (map)
		fclose(map);
	return mapped;
}

static void fail(int socket_fd, int error)
{
	(void)!write(socket_fd, &error, sizeof(error));
	_exit(EXIT_FAILURE);
}

static void run_child(pid_t target, struct ids ids, int socket_fd, int library_fd, int region_fd)
{
	uid_t user = same_namespace(target, "ns/user") ? ids.user : map_id(target, "uid_map", ids.user);
	gid_t group = same_namespace(target, "ns/user") ? ids.group : map_id(target, "gid_map", ids.group);
	bool other_pids = !same_namespace(target, "ns/pid");
	char path[PROC_PATH_BYTES];
	int pid_fd = open(proc_path(path, target, "ns/pid"), O_RDONLY | O_CLOEXEC);
	int root_fd = open(proc_path(path, target, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int error = enter(target, "ns/user", CLONE_NEWUSER);
	if (!error && other_pids && (pid_fd < 0 || setns(pid_fd, CLONE_NEWPID) != 0))
		error = -errno;
	if (error)
		fail(socket_fd, error);
	/* A child is the first that is in the new pid namespace. */
	pid_t child = other_pids ? fork() : 0;
	if (child > 0)
		_exit(EXIT_SUCCESS);
	if (child < 0)
		fail(socket_fd, -errno);
	place_descriptors((const int[PLACES]){socket_fd, library_fd, region_fd, root_fd});
	execute(user, group);
}

/* Those that count when it opens a file: the last of four. */
static struct ids ids_of(pid_t pid)
{
	char status[4096];
	struct ids ids = {geteuid(), getegid()};
	(void)proc_read(pid, "status", status, sizeof(status));
	const char *user = strstr(status, "\nUid:"), *group = strstr(status, "\nGid:");
	if (user && group) {
		(void)sscanf(user, " Uid: %*u %*u %*u %u", &ids.user);
		(void)sscanf(group, " Gid: %*u %*u %*u %u", &ids.group);
	}
	return ids;
}

int handed_await(const struct handed *handed, void *answer, size_t bytes, int cancel_fd)
{
	struct pollfd fds[] = {{.fd = handed->fd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
	int ready;
	do
		ready = poll(fds, 2, ANSWER_MS);
	while (ready < 0 && errno == EINTR);
	if (fds[0].revents)
		return recv(handed->fd, answer, bytes, MSG_DONTWAIT) == (ssize_t)bytes ? 0 : -EIO;
	return ready > 0 ? -ECANCELED : -ETIMEDOUT;
}

int holder_start(struct handed *handed, pid_t target, int library_fd, int region_fd, int cancel_fd)
{
	int pair[2], answer = -EIO;
	*handed = (struct handed){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	handed->child = fork();
	if (handed->child == 0) {
		close(pair[0]);
		run_child(target, ids_of(target), pair[1], library_fd, region_fd);
	}
	close(pair[1]);
	handed->fd = pair[0];
	int error = handed->child < 0 ? -EIO : handed_await(handed, &answer, sizeof(answer), cancel_fd);
	if (error || answer <= 0) {
		if (handed->child > 0)
			kill(handed->child, SIGKILL); /* it has nothing to clean up */
		handed_end(handed);
		return error ? error : answer < 0 ? answer : -EIO;
	}
	snprintf(handed->library_path, sizeof(handed->library_path), "/proc/%d/fd/" ATTACH_LIBRARY_FD_NAME,
	    answer);
	snprintf(
	    handed->region_path, sizeof(handed->region_path), "/proc/%d/fd/" ATTACH_REGION_FD_NAME, answer);
	return 0;
}

void handed_end(struct handed *handed)
{
	if (handed->fd >= 0)
		close(handed->fd);
	if (handed->child > 0)
		child_end(handed->child, end_ns);
	*handed = (struct handed){.fd = -1};
}

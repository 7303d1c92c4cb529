/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/region_socket.h"

#include "proto/region_pool.h"

#include "sampler/linux/proc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	BACKLOG = 256,
	VISITORS = 128, /* that have sent nothing yet, at most; and an eighth of our descriptors */
	/* Of these one user may have half. Programs that start at once are such visitors too, for the
	 * moment between two system calls, which is long on a busy machine: 12 of 60 were turned away when
	 * 8 were allowed. */
	SHARE_OF_USER = 2,
	ACCEPTS = 512, /* accepted in one look */
	HELD_MAX = 8192,
	HELD_BY_PROCESS = 64, /* in a chain of execs each run holds one until we notice its end */
};

struct visitor {
	int fd;
	struct ucred peer;
};

/* A region that was handed out and is not closed yet. */
struct grant {
	struct region *region; /* NULL: free */
	struct ucred peer;
};

struct region_socket {
	int fds[REGION_SOCKETS];
	struct sockaddr_un file; /* of fds[1] */
	uint32_t turn;           /* the socket from which the next connection is accepted first */
	uint64_t cookie;
	bool knocked;  /* there may be connections to accept */
	bool is_short; /* the last could not be accepted: no descriptor or memory was left */
	struct visitor visitors[VISITORS]; /* oldest first */
	uint32_t visitor_count, visitor_room;
	struct ucred chosen; /* credentials of the last visitor that region_socket_next returned */
	struct grant *grants;
	uint32_t grant_room;
	uint64_t refused, strangers, crowded_out;
};

/* Regions, each with two descriptors: half of ours; the rest is for visitors, and for program runs that use
 * tickets. */
static void divide_descriptors(struct region_socket *listener)
{
	struct rlimit files = {.rlim_cur = 1024};

	(void)getrlimit(RLIMIT_NOFILE, &files); /* cannot fail */
	listener->grant_room = files.rlim_cur / 4 < HELD_MAX ? (uint32_t)(files.rlim_cur / 4) : HELD_MAX;
	listener->visitor_room = files.rlim_cur / 8 < VISITORS ? (uint32_t)(files.rlim_cur / 8) : VISITORS;
	if (listener->visitor_room < SHARE_OF_USER)
		listener->visitor_room = SHARE_OF_USER;
}

/* Anybody may connect to a file too, as to an abstract name. */
static int open_at(const struct sockaddr_un *address, socklen_t bytes)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const mode_t mask = umask(0);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)address, bytes) == 0 && listen(fd, BACKLOG) == 0) {
		umask(mask);
		return fd;
	}
	const int error = -errno;
	umask(mask);
	if (fd >= 0)
		close(fd);
	return error;
}

/* Removes the files of samplers that were killed. A pid that nobody has here may be one of another pid
 * namespace: if its sampler lives, it takes our connection. */
static void sweep_files(void)
{
	struct dirent *entry;
	DIR *folder = opendir("/tmp");

	while (folder && (entry = readdir(folder))) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		int pid;

		if (sscanf(entry->d_name, ".heaptap-proc-%d-fd-", &pid) != 1 || pid <= 0 ||
		    kill(pid, 0) == 0 || errno != ESRCH ||
		    snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/%s", entry->d_name) >=
		        (int)sizeof(address.sun_path))
			continue;
		const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 &&
		    errno == ECONNREFUSED)
			(void)unlink(address.sun_path);
		if (fd >= 0)
			close(fd);
	}
	if (folder)
		closedir(folder);
}

struct region_socket *region_socket_new(const char *pool_path, uint64_t cookie, int *error)
{
	struct sockaddr_un address;
	struct region_socket *listener = calloc(1, sizeof(*listener));

	*error = -ENOMEM;
	if (!listener)
		return NULL;
	listener->cookie = cookie;
	divide_descriptors(listener);
	sweep_files();
	listener->fds[0] = open_at(&address, region_socket_address(pool_path, cookie, &address));
	listener->fds[1] = open_at(&listener->file, region_socket_file(pool_path, cookie, &listener->file));
	listener->grants = calloc(listener->grant_room, sizeof(*listener->grants));
	if (listener->grants)
		*error = listener->fds[0] < 0 ? listener->fds[0] : 0;
	if (!*error)
		return listener;
	region_socket_free(listener);
	return NULL;
}

void region_socket_free(struct region_socket *listener)
{
	if (!listener)
		return;
	for (uint32_t i = 0; i < listener->visitor_count; i++)
		close(listener->visitors[i].fd);
	if (listener->fds[1] >= 0)
		(void)unlink(listener->file.sun_path);
	for (size_t i = 0; i < REGION_SOCKETS; i++)
		if (listener->fds[i] >= 0)
			close(listener->fds[i]);
	free(listener->grants);
	free(listener);
}

int region_socket_fd(const struct region_socket *listener, size_t i)
{
	return listener->fds[i] < 0 ? -1 : listener->fds[i];
}

void region_socket_knock(struct region_socket *listener)
{
	listener->knocked = true;
}

static void forget(struct region_socket *listener, uint32_t i)
{
	memmove(&listener->visitors[i], &listener->visitors[i + 1],
	    (--listener->visitor_count - i) * sizeof(listener->visitors[0]));
}

static void show_out(struct region_socket *listener, uint32_t i, uint64_t *count)
{
	close(listener->visitors[i].fd);
	forget(listener, i);
	++*count;
}

static uint32_t visitors_of(const struct region_socket *listener, uid_t uid)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < listener->visitor_count; i++)
		count += listener->visitors[i].peer.uid == uid;
	return count;
}

/* Makes room for a visitor of that user. If the table or the user's share of it is full, drops the oldest
 * connection that has sent nothing: of the same user, or of the user with most connections. */
static void make_seat(struct region_socket *listener, uid_t uid)
{
	uid_t from = uid;
	uint32_t most = 0;

	if (visitors_of(listener, uid) < listener->visitor_room / SHARE_OF_USER) {
		if (listener->visitor_count < listener->visitor_room)
			return;
		for (uint32_t i = 0; i < listener->visitor_count; i++) {
			uint32_t count = visitors_of(listener, listener->visitors[i].peer.uid);

			if (count > most) {
				most = count;
				from = listener->visitors[i].peer.uid;
			}
		}
	}
	for (uint32_t i = 0; i < listener->visitor_count; i++)
		if (listener->visitors[i].peer.uid == from) {
			show_out(listener, i, &listener->crowded_out);
			return;
		}
}

/* 1: has sent the cookie, which only processes that inherited it can read; 0: has sent nothing yet; -1: a
 * stranger. */
static int visitor_known(const struct region_socket *listener, int fd)
{
	uint64_t cookie = 0;
	ssize_t got = recv(fd, &cookie, sizeof(cookie), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return got == (ssize_t)sizeof(cookie) && cookie == listener->cookie ? 1 : -1;
}

/* A free entry in the list of grants, if this process and its user may hold one more region. */
static struct grant *find_room(const struct region_socket *listener, const struct ucred *peer)
{
	struct grant *room = NULL;
	uint32_t of_process = 0, of_user = 0;

	for (uint32_t i = 0; i < listener->grant_room; i++) {
		struct grant *grant = &listener->grants[i];

		if (!grant->region)
			room = room ? room : grant;
		else if (grant->peer.uid == peer->uid)
			of_user++, of_process += grant->peer.pid == peer->pid;
	}
	return of_process < HELD_BY_PROCESS && of_user < listener->grant_room / 2 ? room : NULL;
}

/* Counts a connection that cannot be accepted; one that must wait for a descriptor, once. */
static void miss(struct region_socket *listener, int error)
{
	bool was_short = listener->is_short;

	listener->knocked = error != EAGAIN;
	listener->is_short = proc_is_shortage(error);
	listener->strangers += listener->knocked && error != EINTR && !(listener->is_short && was_short);
}

/* Accepts the next connection, or returns -1. */
static int let_in(struct region_socket *listener, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);
	int fd = -1;

	errno = EAGAIN;
	for (size_t i = 0; i < REGION_SOCKETS && fd < 0 && errno == EAGAIN; i++) {
		const int from = listener->fds[listener->turn++ % REGION_SOCKETS];

		if (from >= 0)
			fd = accept4(from, NULL, NULL, SOCK_CLOEXEC);
	}
	if (fd < 0) {
		miss(listener, errno);
		return -1;
	}
	listener->is_short = false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) != 0)
		*peer = (struct ucred){.uid = (uid_t)-1};
	return fd;
}

/* True if this visitor may have a region. Otherwise it is disconnected, or kept if it has sent nothing
 * yet. */
static bool hear(struct region_socket *listener, uint32_t i)
{
	struct visitor *visitor = &listener->visitors[i];
	int known = visitor_known(listener, visitor->fd);

	if (known > 0 && find_room(listener, &visitor->peer))
		return true;
	if (known > 0) {
		listener->refused++;
		close(visitor->fd);
		forget(listener, i);
	} else if (known < 0) {
		show_out(listener, i, &listener->strangers);
	}
	return false;
}

static int choose(struct region_socket *listener, uint32_t i)
{
	int fd = listener->visitors[i].fd;

	listener->chosen = listener->visitors[i].peer;
	forget(listener, i);
	return fd;
}

int region_socket_next(struct region_socket *listener)
{
	for (uint32_t i = 0, count = listener->visitor_count; i < listener->visitor_count;) {
		if (hear(listener, i))
			return choose(listener, i);
		i += count == listener->visitor_count; /* still connected */
		count = listener->visitor_count;
	}
	for (int n = 0; n < ACCEPTS && listener->knocked; n++) {
		struct ucred peer;
		int fd = let_in(listener, &peer);

		if (fd < 0)
			break;
		make_seat(listener, peer.uid);
		listener->visitors[listener->visitor_count++] = (struct visitor){fd, peer};
		if (hear(listener, listener->visitor_count - 1))
			return choose(listener, listener->visitor_count - 1);
	}
	return -1;
}

bool region_socket_send(int visitor, const struct region *region)
{
	const int fds[] = {region->fd, region->buffers_fd};
	char byte = 0;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(fds))];
	} control = {
	    .header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fds))}};
	struct iovec data = {&byte, 1};
	const struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	return sendmsg(visitor, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool region_socket_give(struct region_socket *listener, int visitor, struct region *region)
{
	struct grant *grant = find_room(listener, &listener->chosen);
	bool given = region && grant && region_socket_send(visitor, region);

	if (given) {
		*grant = (struct grant){region, listener->chosen};
		region->holder = &grant->region;
		region->taken_by = listener->chosen.pid;
	}
	listener->refused += !given; /* the visitor has got no region */
	close(visitor);
	return given;
}

uint64_t region_socket_refused(const struct region_socket *listener)
{
	return listener ? listener->refused : 0;
}

uint64_t region_socket_strangers(const struct region_socket *listener)
{
	return listener ? listener->strangers : 0;
}

uint64_t region_socket_crowded_out(const struct region_socket *listener)
{
	return listener ? listener->crowded_out : 0;
}

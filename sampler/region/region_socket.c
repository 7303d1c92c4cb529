/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/region/region_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	BACKLOG = 256,
	VISITORS = 64,        /* who have not spoken yet */
	VISITORS_OF_USER = 8, /* most of one user's among them */
	ACCEPTS = 512,        /* in one look */
	HELD_MAX = 8192,
	HELD_BY_PROCESS = 64, /* a chain of execs holds one until the next, and each until it is noticed */
};

struct visitor {
	int fd;
	struct ucred peer;
};

/* A region that was given and is not closed yet. */
struct grant {
	struct region *region; /* NULL: free */
	struct ucred peer;
};

struct region_socket {
	int fd;
	uint64_t cookie;
	bool knocked;
	struct visitor visitors[VISITORS]; /* oldest first */
	uint32_t visitor_count;
	struct ucred chosen; /* of whom region_socket_next returned */
	struct grant *grants;
	uint32_t grant_room;
	uint64_t refused, strangers;
};

/* Half of our descriptors; the rest is for those whom nobody had to let in. */
static uint32_t held_max(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return VISITORS;
	return files.rlim_cur / 2 < HELD_MAX ? (uint32_t)(files.rlim_cur / 2) : HELD_MAX;
}

struct region_socket *region_socket_new(const char *pool_path, uint64_t cookie, int *error)
{
	struct sockaddr_un address;
	socklen_t bytes = region_socket_address(pool_path, cookie, &address);
	struct region_socket *door = calloc(1, sizeof(*door));
	*error = -ENOMEM;
	if (!door)
		return NULL;
	door->cookie = cookie;
	door->grant_room = held_max();
	door->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	door->grants = calloc(door->grant_room, sizeof(*door->grants));
	if (door->fd < 0 || bind(door->fd, (const struct sockaddr *)&address, bytes) != 0 ||
	    listen(door->fd, BACKLOG) != 0)
		*error = -errno;
	else if (door->grants)
		*error = 0;
	if (!*error)
		return door;
	region_socket_free(door);
	return NULL;
}

void region_socket_free(struct region_socket *door)
{
	if (!door)
		return;
	for (uint32_t i = 0; i < door->visitor_count; i++)
		close(door->visitors[i].fd);
	if (door->fd >= 0)
		close(door->fd);
	free(door->grants);
	free(door);
}

int region_socket_fd(const struct region_socket *door)
{
	return door->fd;
}

void region_socket_knock(struct region_socket *door)
{
	door->knocked = true;
}

static void forget(struct region_socket *door, uint32_t i)
{
	memmove(&door->visitors[i], &door->visitors[i + 1],
	    (--door->visitor_count - i) * sizeof(door->visitors[0]));
}

static void show_out(struct region_socket *door, uint32_t i)
{
	close(door->visitors[i].fd);
	forget(door, i);
	door->strangers++;
}

static uint32_t visitors_of(const struct region_socket *door, uid_t uid)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < door->visitor_count; i++)
		count += door->visitors[i].peer.uid == uid;
	return count;
}

/* One seat for a visitor of that user: of those who say nothing, the one goes who has been there longest, of
 * the same user or of whoever has most. */
static void make_seat(struct region_socket *door, uid_t uid)
{
	uid_t from = uid;
	uint32_t most = 0;
	if (visitors_of(door, uid) < VISITORS_OF_USER) {
		if (door->visitor_count < VISITORS)
			return;
		for (uint32_t i = 0; i < door->visitor_count; i++) {
			uint32_t count = visitors_of(door, door->visitors[i].peer.uid);
			if (count > most) {
				most = count;
				from = door->visitors[i].peer.uid;
			}
		}
	}
	for (uint32_t i = 0; i < door->visitor_count; i++)
		if (door->visitors[i].peer.uid == from) {
			show_out(door, i);
			return;
		}
}

/* 1: shows the cookie, which only processes that inherited it can read; 0: has not spoken yet; -1: a
 * stranger. */
static int visitor_known(const struct region_socket *door, int fd)
{
	uint64_t cookie = 0;
	ssize_t got = recv(fd, &cookie, sizeof(cookie), MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return got == (ssize_t)sizeof(cookie) && cookie == door->cookie ? 1 : -1;
}

/* A place in the list of grants, if this process and its user may hold one more. */
static struct grant *find_room(const struct region_socket *door, const struct ucred *peer)
{
	struct grant *room = NULL;
	uint32_t of_process = 0, of_user = 0;
	for (uint32_t i = 0; i < door->grant_room; i++) {
		struct grant *grant = &door->grants[i];
		if (!grant->region)
			room = room ? room : grant;
		else if (grant->peer.uid == peer->uid)
			of_user++, of_process += grant->peer.pid == peer->pid;
	}
	return of_process < HELD_BY_PROCESS && of_user < door->grant_room / 2 ? room : NULL;
}

/* The next who waits outside, or -1. */
static int let_in(struct region_socket *door, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);
	int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0) {
		door->knocked = false;
		door->strangers += errno != EAGAIN && errno != EINTR;
		return -1;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) != 0)
		*peer = (struct ucred){.uid = (uid_t)-1};
	return fd;
}

/* Is this visitor one to be given a region? Then true. Else it is closed, or stays seated. */
static bool hear(struct region_socket *door, uint32_t i)
{
	struct visitor *visitor = &door->visitors[i];
	int known = visitor_known(door, visitor->fd);
	if (known > 0 && find_room(door, &visitor->peer))
		return true;
	if (known > 0) {
		door->refused++;
		close(visitor->fd);
		forget(door, i);
	} else if (known < 0) {
		show_out(door, i);
	}
	return false;
}

static int choose(struct region_socket *door, uint32_t i)
{
	int fd = door->visitors[i].fd;
	door->chosen = door->visitors[i].peer;
	forget(door, i);
	return fd;
}

int region_socket_next(struct region_socket *door)
{
	for (uint32_t i = 0, count = door->visitor_count; i < door->visitor_count;) {
		if (hear(door, i))
			return choose(door, i);
		i += count == door->visitor_count; /* still seated */
		count = door->visitor_count;
	}
	for (int n = 0; n < ACCEPTS && door->knocked; n++) {
		struct ucred peer;
		int fd = let_in(door, &peer);
		if (fd < 0)
			break;
		make_seat(door, peer.uid);
		door->visitors[door->visitor_count++] = (struct visitor){fd, peer};
		if (hear(door, door->visitor_count - 1))
			return choose(door, door->visitor_count - 1);
	}
	return -1;
}

static bool hand_over(int visitor, int fd)
{
	char byte = 0;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {
	    .header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec data = {&byte, 1};
	const struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(visitor, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool region_socket_give(struct region_socket *door, int visitor, struct region *region)
{
	struct grant *grant = find_room(door, &door->chosen);
	bool given = region && grant && hand_over(visitor, region->fd);
	if (given) {
		*grant = (struct grant){region, door->chosen};
		region->holder = &grant->region;
	}
	door->refused += !given; /* has waited long enough */
	close(visitor);
	return given;
}

uint64_t region_socket_refused(const struct region_socket *door)
{
	return door ? door->refused : 0;
}

uint64_t region_socket_strangers(const struct region_socket *door)
{
	return door ? door->strangers : 0;
}

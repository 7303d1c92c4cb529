/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/control_server.h"

#include "sampler/core/control_peer.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/linux/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room for the longest answer; the kernel doubles it. */
enum { SOCKET_BYTES = 8192 };

/* An answer that the client's socket has no room for yet. */
struct waiting {
	struct waiting *next;
	int profile_fd; /* owned; -1: none */
	size_t length;
	char text[];
};

struct client {
	int fd;      /* -1: free */
	uint64_t id; /* number of this client, never 0; of an older client it is smaller */
	uid_t user;
	uint32_t outstanding;
	bool asked; /* it has made its request, and may make no other */
	struct waiting *first, **last;
	size_t waiting_bytes, waiting_profiles;
};

struct control_server {
	int fd, epoll_fd;
	int spare_fd; /* closed to accept a client that is sent away: until then the socket is readable */
	gid_t group;
	struct control_handlers handlers;
	struct client clients[CONTROL_SERVER_CLIENTS];
	uint64_t next_id;
};

static int open_spare(void)
{
	return open("/dev/null", O_PATH | O_CLOEXEC);
}

struct control_server *control_server_new(
    int epoll_fd, int listen_fd, gid_t group, const struct control_handlers *handlers, int *error)
{
	struct control_server *server = calloc(1, sizeof(*server));

	*error = server ? epoll_set_add(epoll_fd, listen_fd) : -ENOMEM;
	if (*error) {
		close(listen_fd);
		free(server);
		return NULL;
	}
	server->fd = listen_fd;
	server->epoll_fd = epoll_fd;
	server->spare_fd = open_spare();
	server->group = group;
	server->handlers = *handlers;
	for (size_t i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		server->clients[i].fd = -1;
	return server;
}

static void waiting_free(struct waiting *waiting)
{
	if (waiting->profile_fd >= 0)
		close(waiting->profile_fd);
	free(waiting);
}

/* Disconnects a client. Children that write snapshots have copies of its descriptor, so only shutdown()
 * gives it an end of file. */
static void disconnect(const struct control_server *server, struct client *client)
{
	(void)shutdown(client->fd, SHUT_RDWR);
	epoll_set_close(server->epoll_fd, client->fd);
	client->fd = -1;
	while (client->first) {
		struct waiting *waiting = client->first;

		client->first = waiting->next;
		waiting_free(waiting);
	}
}

static void drop(const struct control_server *server, struct client *client)
{
	const struct control_handlers *handlers = &server->handlers;
	bool waited = client->outstanding > 0;

	disconnect(server, client);
	client->outstanding = 0;
	if (waited && handlers->gone)
		handlers->gone(handlers->context, client->id);
}

void control_server_free(struct control_server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		if (server->clients[i].fd >= 0)
			disconnect(server, &server->clients[i]);
	epoll_set_close(server->epoll_fd, server->fd);
	if (server->spare_fd >= 0)
		close(server->spare_fd);
	free(server);
}

/* Sends a packet. 0 or -errno; -EAGAIN if the client's socket is full. */
static int send_packet(int fd, const char *text, size_t length, int profile_fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} ancillary = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec bytes = {.iov_base = (void *)(uintptr_t)text, .iov_len = length};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (profile_fd >= 0) {
		message.msg_control = &ancillary;
		message.msg_controllen = sizeof(ancillary.room);
		memcpy(CMSG_DATA(&ancillary.header), &profile_fd, sizeof(profile_fd));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static void wait_for_room(const struct control_server *server, const struct client *client, bool wait)
{
	struct epoll_event event = {.events = wait ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.fd = client->fd};

	(void)epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, client->fd, &event);
}

/* Sends the answers that wait. A client that has got all its answers is disconnected. */
static void flush_waiting(struct control_server *server, struct client *client)
{
	while (client->first) {
		struct waiting *waiting = client->first;
		int error = send_packet(client->fd, waiting->text, waiting->length, waiting->profile_fd);

		if (error == -EAGAIN)
			return;
		if (error) {
			drop(server, client);
			return;
		}
		client->first = waiting->next;
		client->waiting_bytes -= waiting->length;
		client->waiting_profiles -= waiting->profile_fd >= 0;
		waiting_free(waiting);
	}
	wait_for_room(server, client, false);
	if (client->asked && !client->outstanding)
		drop(server, client);
}

/* Queues an answer, and takes over profile_fd. False if there is no room: then the client is dropped. */
static bool put_waiting(
    struct control_server *server, struct client *client, const char *text, size_t length, int profile_fd)
{
	struct waiting *waiting = NULL;

	if (client->waiting_bytes + length <= CONTROL_SERVER_QUEUE_BYTES &&
	    (profile_fd < 0 || client->waiting_profiles < CONTROL_SERVER_QUEUE_PROFILES))
		waiting = malloc(sizeof(*waiting) + length);
	if (!waiting) {
		if (profile_fd >= 0)
			close(profile_fd);
		drop(server, client);
		return false;
	}
	*waiting = (struct waiting){.profile_fd = profile_fd, .length = length};
	memcpy(waiting->text, text, length);
	if (!client->first)
		client->last = &client->first;
	*client->last = waiting;
	client->last = &waiting->next;
	client->waiting_bytes += length;
	client->waiting_profiles += profile_fd >= 0;
	return true;
}

/* Sends or queues an answer, and takes over profile_fd. The client may be gone afterwards. */
static void say(
    struct control_server *server, struct client *client, const struct control_answer *answer, int profile_fd)
{
	char text[CONTROL_ANSWER_BYTES];
	size_t length = (size_t)control_answer_format(answer, text);
	int error = client->first ? -EAGAIN : send_packet(client->fd, text, length, profile_fd);

	if (error == -EAGAIN) {
		if (put_waiting(server, client, text, length, profile_fd))
			wait_for_room(server, client, true);
		return;
	}
	if (profile_fd >= 0)
		close(profile_fd);
	if (error)
		drop(server, client);
}

/* Closes a client that cannot be served: with "busy", or without a word if it may not ask. */
static void send_away(const struct control_server *server, int fd)
{
	if (control_peer_may(fd, server->group))
		(void)send(fd, "busy", 4, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)shutdown(fd, SHUT_RDWR);
	close(fd);
}

static void send_away_without_room(struct control_server *server)
{
	if (server->spare_fd >= 0)
		close(server->spare_fd);
	int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		send_away(server, fd);
	server->spare_fd = open_spare();
}

static uint32_t clients_of(const struct control_server *server, uid_t user)
{
	uint32_t count = 0;

	for (size_t i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		count += server->clients[i].fd >= 0 && server->clients[i].user == user;
	return count;
}

/* The client that loses its place to a new client of that user, if all places are taken: one that has asked
 * nothing, of the user with most of all clients, the oldest. If all have asked: the oldest of the user with
 * most, if the new client's user has at least two places less. NULL: none. */
static struct client *find_place_to_take(struct control_server *server, uid_t user)
{
	struct client *silent = NULL, *asked = NULL;

	for (size_t i = 0; i < CONTROL_SERVER_CLIENTS; i++) {
		struct client *client = &server->clients[i];
		struct client **found = client->asked ? &asked : &silent;
		const uint32_t count = clients_of(server, client->user),
		               before = *found ? clients_of(server, (*found)->user) : 0;

		if (count > before || (count == before && client->id < (*found)->id))
			*found = client;
	}
	if (silent)
		return silent;
	return clients_of(server, user) + 1 < clients_of(server, asked->user) ? asked : NULL;
}

/* No user can keep others from asking, by clients that ask nothing or wait for long. */
static struct client *find_place(struct control_server *server, uid_t user)
{
	for (size_t i = 0; i < CONTROL_SERVER_CLIENTS; i++)
		if (server->clients[i].fd < 0)
			return &server->clients[i];
	struct client *client = find_place_to_take(server, user);
	if (!client)
		return NULL;
	if (!client->asked)
		(void)send(client->fd, "busy", 4, MSG_NOSIGNAL | MSG_DONTWAIT);
	drop(server, client);
	return client;
}

static void take_client(struct control_server *server)
{
	int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			send_away_without_room(server);
		return;
	}
	const uid_t user = control_peer_user(fd);
	struct client *client = control_peer_may(fd, server->group) ? find_place(server, user) : NULL;
	/* A small buffer: the profiles in it take our memory. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){SOCKET_BYTES}, sizeof(int));
	if (!client || epoll_set_add(server->epoll_fd, fd) != 0) {
		send_away(server, fd);
		return;
	}
	*client = (struct client){.fd = fd, .id = ++server->next_id, .user = user};
}

int control_server_memory(const void *bytes, size_t length)
{
	static const char empty[1];
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int fd = memory_file_create("heaptap-control"), error = 0;
	const char *at = length ? bytes : empty;

	if (fd < 0)
		return fd;
	for (size_t done = 0; done < length && !error;) {
		ssize_t wrote = write(fd, at + done, length - done);

		if (wrote < 0 && errno != EINTR)
			error = -errno;
		else if (wrote > 0)
			done += (size_t)wrote;
	}
	if (!error && fcntl(fd, F_ADD_SEALS, seals) != 0)
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Makes the list as sealed memory. Returns a descriptor or -errno. */
static int make_list(struct control_server *server, uint64_t *length)
{
	struct control_list_writer writer = {0};

	server->handlers.list(server->handlers.context, &writer);
	int fd = writer.error ? writer.error : control_server_memory(writer.text, writer.bytes);
	*length = writer.bytes;
	control_list_writer_fini(&writer);
	return fd;
}

static void answer_list(struct control_server *server, struct client *client)
{
	struct control_answer answer = {.kind = CONTROL_UNSUPPORTED};
	int fd = -1;

	if (server->handlers.list) {
		fd = make_list(server, &answer.bytes);
		answer.kind = fd < 0 ? CONTROL_BUSY : CONTROL_LISTED;
	}
	say(server, client, &answer, fd < 0 ? -1 : fd);
}

static enum control_answer_kind refusal(int64_t error)
{
	switch (error) {
	case -ECANCELED:
		return CONTROL_OFF;
	case -ENODATA:
		return CONTROL_UNSAMPLED;
	case -EOPNOTSUPP:
		return CONTROL_UNSUPPORTED;
	default: /* not "unknown", which means that the process is not profiled */
		return CONTROL_BUSY;
	}
}

static void answer_ask(
    struct control_server *server, struct client *client, const struct control_request *request)
{
	struct control_answer answer = {.kind = CONTROL_UNKNOWN};
	int64_t count = server->handlers.ask(server->handlers.context, request, client->id);

	if (count > 0) {
		answer.kind = CONTROL_ASKED;
		answer.count = client->outstanding = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
	} else if (count < 0) {
		answer.kind = refusal(count);
	}
	say(server, client, &answer, -1);
}

static void take_request(struct control_server *server, struct client *client)
{
	char text[CONTROL_REQUEST_BYTES];
	struct control_request request;
	ssize_t got = recv(client->fd, text, sizeof(text), 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0 || client->asked || control_request_parse(&request, text, (size_t)got)) {
		drop(server, client);
		return;
	}
	client->asked = true;
	if (request.verb == CONTROL_LIST)
		answer_list(server, client);
	else
		answer_ask(server, client, &request);
	if (client->fd >= 0 && !client->outstanding && !client->first)
		drop(server, client);
}

bool control_server_event(struct control_server *server, int fd)
{
	if (!server)
		return false;
	if (fd == server->fd) {
		take_client(server);
		return true;
	}
	for (size_t i = 0; i < CONTROL_SERVER_CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (client->fd != fd)
			continue;
		if (client->first)
			flush_waiting(server, client);
		if (client->fd == fd)
			take_request(server, client);
		return true;
	}
	return false;
}

static struct client *find_asker(struct control_server *server, uint64_t asker)
{
	for (size_t i = 0; server && i < CONTROL_SERVER_CLIENTS; i++)
		if (server->clients[i].fd >= 0 && server->clients[i].id == asker &&
		    server->clients[i].outstanding)
			return &server->clients[i];
	return NULL;
}

/* Gives an answer to the asker, if it still waits. Takes over profile_fd. */
static void give(
    struct control_server *server, uint64_t asker, const struct control_answer *answer, int profile_fd)
{
	struct client *client = find_asker(server, asker);

	if (!client) {
		if (profile_fd >= 0)
			close(profile_fd);
		return;
	}
	client->outstanding--;
	say(server, client, answer, profile_fd);
	if (client->fd >= 0 && !client->outstanding && !client->first)
		drop(server, client);
}

static void answer_text(struct control_answer *answer, const char *text)
{
	size_t length = strnlen(text, sizeof(answer->text) - 1);

	memcpy(answer->text, text, length);
	answer->text[length] = '\0';
}

void control_server_written(struct control_server *server, uint64_t asker, pid_t pid, const char *path)
{
	struct control_answer answer = {.kind = CONTROL_WRITTEN, .pid = pid};

	answer_text(&answer, path);
	give(server, asker, &answer, -1);
}

void control_server_failed(struct control_server *server, uint64_t asker, pid_t pid, int error)
{
	struct control_answer answer = {.kind = error == -ESRCH ? CONTROL_GONE : CONTROL_FAILED, .pid = pid};

	if (answer.kind == CONTROL_FAILED)
		answer_text(&answer, strerror(-error));
	give(server, asker, &answer, -1);
}

void control_server_profiled(struct control_server *server, uint64_t asker, pid_t pid, int profile_fd)
{
	struct control_answer answer = {.kind = CONTROL_PROFILED, .pid = pid};
	struct stat status;

	if (fstat(profile_fd, &status) == 0 && (uint64_t)status.st_size <= CONTROL_PROFILE_BYTES_MAX) {
		answer.bytes = (uint64_t)status.st_size;
		give(server, asker, &answer, profile_fd);
		return;
	}
	if (profile_fd >= 0)
		close(profile_fd);
	control_server_failed(server, asker, pid, -EFBIG);
}

bool control_server_waits(const struct control_server *server, uint64_t asker)
{
	return find_asker((struct control_server *)(uintptr_t)server, asker) != NULL;
}

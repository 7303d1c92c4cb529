/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/notify_relay.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MESSAGE_BYTES_MAX 4096 /* systemd reads no more */
#define DESCRIPTORS_MAX   253  /* nor does the kernel pass more */
/* A manager that does not read must not keep us from COMMAND's signals. */
#define SEND_S            1

/* Aligned room for credentials and descriptors. */
union ancillary {
	char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	struct cmsghdr first;
};

struct message {
	char text[MESSAGE_BYTES_MAX];
	size_t length;
	struct ucred sender;
	int descriptors[DESCRIPTORS_MAX];
	size_t count;
};

static int connect_manager(const char *path)
{
	struct timeval patience = {.tv_sec = SEND_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	int fd;

	if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return -1;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address,
	        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Makes a socket with a name that the kernel chooses: unix(7), autobind. */
static int listen_for_command(char *name, size_t name_bytes)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(sa_family_t);
	const int on = 1;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&address, bytes) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0) {
		bytes = sizeof(address);
		if (getsockname(fd, (struct sockaddr *)&address, &bytes) == 0) {
			size_t length = bytes - offsetof(struct sockaddr_un, sun_path);

			if (length > 1 && length < name_bytes) {
				memcpy(name, address.sun_path, length);
				name[0] = '@';
				name[length] = '\0';
				return fd;
			}
		}
	}
	close(fd);
	return -1;
}

void notify_relay_open(struct notify_relay *relay)
{
	const char *path = getenv("NOTIFY_SOCKET");

	relay->fd = -1;
	relay->manager_fd = path ? connect_manager(path) : -1;
	if (relay->manager_fd < 0)
		return;
	relay->fd = listen_for_command(relay->name, sizeof(relay->name));
	if (relay->fd < 0) {
		close(relay->manager_fd);
		relay->manager_fd = -1;
	}
}

void notify_relay_environment(const struct notify_relay *relay)
{
	if (relay->fd >= 0)
		setenv("NOTIFY_SOCKET", relay->name, 1);
}

/* Receives a message. False if there is none. *whole: false if it is longer than a manager would read. */
static bool receive(int fd, struct message *message, bool *whole)
{
	union ancillary ancillary;
	struct iovec part = {message->text, sizeof(message->text)};
	struct msghdr header = {.msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = ancillary.bytes,
	    .msg_controllen = sizeof(ancillary.bytes)};
	ssize_t got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (got < 0)
		return false;
	message->length = (size_t)got;
	message->count = 0;
	message->sender = (struct ucred){.pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1};
	for (struct cmsghdr *at = CMSG_FIRSTHDR(&header); at; at = CMSG_NXTHDR(&header, at)) {
		size_t bytes = at->cmsg_len - CMSG_LEN(0);

		if (at->cmsg_level != SOL_SOCKET)
			continue;
		if (at->cmsg_type == SCM_CREDENTIALS && bytes >= sizeof(message->sender)) {
			memcpy(&message->sender, CMSG_DATA(at), sizeof(message->sender));
		} else if (at->cmsg_type == SCM_RIGHTS && bytes <= sizeof(message->descriptors)) {
			memcpy(message->descriptors, CMSG_DATA(at), bytes);
			message->count = bytes / sizeof(int);
		}
	}
	*whole = !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
	return true;
}

/* Removes the lines that name another main process: MAINPID=, MAINPIDFD=, MAINPIDFDID=. */
static void drop_main_pid(struct message *message)
{
	static const char key[] = "MAINPID";
	size_t kept = 0;

	for (size_t at = 0, next; at < message->length; at = next) {
		const char *line = message->text + at;
		const char *end = memchr(line, '\n', message->length - at);
		size_t bytes = end ? (size_t)(end - line) + 1 : message->length - at;

		next = at + bytes;
		if (bytes >= sizeof(key) - 1 && memcmp(line, key, sizeof(key) - 1) == 0)
			continue;
		memmove(message->text + kept, line, bytes);
		kept += bytes;
	}
	message->length = kept;
}

/* Sends the message to the manager. False if the manager does not read. */
static bool forward(int fd, struct message *message)
{
	union ancillary ancillary;
	size_t bytes = message->count * sizeof(int);
	struct iovec part = {message->text, message->length};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (message->count) {
		memset(&ancillary, 0, sizeof(ancillary));
		ancillary.first.cmsg_level = SOL_SOCKET;
		ancillary.first.cmsg_type = SCM_RIGHTS;
		ancillary.first.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&ancillary.first), message->descriptors, bytes);
		header.msg_control = ancillary.bytes;
		header.msg_controllen = CMSG_SPACE(bytes);
	}
	return sendmsg(fd, &header, MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

void notify_relay_pass(const struct notify_relay *relay, pid_t command)
{
	struct message message;
	bool whole, goes_on = true;

	for (int i = 0; goes_on && i < NOTIFY_RELAY_AT_ONCE && receive(relay->fd, &message, &whole); i++) {
		/* A process of our user or root could as well trace COMMAND, and make it speak. */
		bool trusted = message.sender.pid == command || message.sender.uid == geteuid() ||
		    message.sender.uid == 0;

		drop_main_pid(&message);
		if (whole && trusted && message.length)
			goes_on = forward(relay->manager_fd, &message);
		for (size_t j = 0; j < message.count; j++)
			close(message.descriptors[j]);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/front_message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>

/* Is a message unread? */
static bool is_unread(int fd)
{
	int bytes = 0;

	return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

int front_message_write(int fd, enum front_message_kind kind, int32_t pid, int32_t status, const char *text)
{
	struct front_message message;
	ssize_t sent;

	if (kind == FRONT_MESSAGE_ALIVE && is_unread(fd))
		return 0;
	memset(&message, 0, sizeof(message));
	message.kind = kind;
	message.pid = pid;
	message.status = status;
	if (text)
		strncpy(message.text, text, sizeof(message.text) - 1);
	do
		sent = send(fd, &message, sizeof(message), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int front_message_read(int fd, struct front_message *message)
{
	ssize_t got;

	do
		got = recv(fd, message, sizeof(*message), MSG_TRUNC); /* the length of the packet */
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (got == 0)
		return -EPIPE;
	if ((size_t)got != sizeof(*message))
		return -EPROTO;
	message->text[sizeof(message->text) - 1] = '\0';
	return 0;
}

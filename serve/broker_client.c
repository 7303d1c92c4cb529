/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/broker_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAITING_MAX = 128 };

struct broker_client {
	int fd;
	uint64_t next_id;
	struct waiting {
		uint64_t id; /* 0: free */
		broker_client_got *got;
		void *context;
	} waiting[WAITING_MAX];
};

struct broker_client *broker_client_new(int fd)
{
	struct broker_client *client = calloc(1, sizeof(*client));

	if (client)
		client->fd = fd;
	return client;
}

void broker_client_free(struct broker_client *client)
{
	if (client)
		close(client->fd);
	free(client);
}

int broker_client_fd(const struct broker_client *client)
{
	return client->fd;
}

static struct waiting *find(struct broker_client *client, uint64_t id)
{
	for (size_t i = 0; i < WAITING_MAX; i++)
		if (client->waiting[i].id == id)
			return &client->waiting[i];
	return NULL;
}

uint64_t broker_client_ask(
    struct broker_client *client, const struct broker_request *request, broker_client_got *got, void *context)
{
	struct waiting *waiting = find(client, 0);
	struct broker_request numbered = *request;

	if (!waiting)
		return 0;
	numbered.id = client->next_id + 1;
	if (broker_message_send(client->fd, &numbered, sizeof(numbered), -1))
		return 0;
	*waiting = (struct waiting){++client->next_id, got, context};
	return numbered.id;
}

void broker_client_cancel(struct broker_client *client, uint64_t id)
{
	const struct broker_request request = {.id = id, .verb = BROKER_CANCEL};
	struct waiting *waiting = id ? find(client, id) : NULL;

	if (!waiting)
		return;
	waiting->id = 0;
	(void)broker_message_send(client->fd, &request, sizeof(request), -1);
}

bool broker_client_event(struct broker_client *client)
{
	struct broker_reply reply;
	int fd, got;

	while ((got = broker_message_receive(client->fd, &reply, sizeof(reply), &fd)) == 1) {
		struct waiting *waiting = reply.id ? find(client, reply.id) : NULL;
		struct waiting copy = waiting ? *waiting : (struct waiting){0};

		reply.text[sizeof(reply.text) - 1] = '\0';
		if (waiting && reply.last)
			waiting->id = 0;
		if (waiting)
			copy.got(copy.context, &reply, fd);
		else if (fd >= 0)
			close(fd);
	}
	return got == -EAGAIN;
}

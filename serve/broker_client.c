/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/broker_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct broker_client {
	int fd;
	uint64_t next_id;
	size_t unsent; /* of the requests that wait, those that are not sent */
	struct waiting {
		struct broker_request request; /* id 0: free */
		bool sent;
		broker_client_got *got;
		void *context;
	} waiting[BROKER_CLIENT_WAITING_MAX];
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
	for (size_t i = 0; i < BROKER_CLIENT_WAITING_MAX; i++)
		if (client->waiting[i].request.id == id)
			return &client->waiting[i];
	return NULL;
}

/* ---- turns */

static size_t room_for_files(const struct broker_client *client)
{
	size_t room = BROKER_CLIENT_FILES_AT_ONCE;

	for (size_t i = 0; i < BROKER_CLIENT_WAITING_MAX && room; i++)
		room -= client->waiting[i].request.id && client->waiting[i].sent &&
		    client->waiting[i].request.verb == BROKER_OPEN;
	return room;
}

/* How many more requests of that kind its sampler may get now. */
static size_t room_for(const struct broker_client *client, const struct broker_request *request)
{
	const bool cpu = request->verb == BROKER_CPU;
	size_t room = cpu ? BROKER_CLIENT_CPU_AT_ONCE : BROKER_CLIENT_PROFILES_AT_ONCE;

	if (request->verb == BROKER_OPEN)
		return room_for_files(client);
	if (!cpu && request->verb != BROKER_PROFILE && request->verb != BROKER_SNAPSHOT)
		return 1; /* such a request asks no sampler, or each only once */
	for (size_t i = 0; i < BROKER_CLIENT_WAITING_MAX && room; i++) {
		const struct waiting *other = &client->waiting[i];

		room -= other->request.id && other->sent && other->request.server == request->server &&
		    (other->request.verb == BROKER_CPU) == cpu &&
		    (cpu || other->request.verb == BROKER_PROFILE || other->request.verb == BROKER_SNAPSHOT);
	}
	return room;
}

/* Of the requests whose turn it is, the one that has waited longest. */
static struct waiting *next_in_turn(struct broker_client *client)
{
	struct waiting *next = NULL;

	for (size_t i = 0; i < BROKER_CLIENT_WAITING_MAX; i++) {
		struct waiting *waiting = &client->waiting[i];

		if (waiting->request.id && !waiting->sent &&
		    (!next || waiting->request.id < next->request.id) && room_for(client, &waiting->request))
			next = waiting;
	}
	return next;
}

static void send_next(struct broker_client *client)
{
	struct waiting *next;

	while (client->unsent && (next = next_in_turn(client))) {
		if (broker_message_send(client->fd, &next->request, sizeof(next->request), -1))
			return; /* no room now: it is sent after the next reply */
		next->sent = true;
		client->unsent--;
	}
}

uint64_t broker_client_ask(
    struct broker_client *client, const struct broker_request *request, broker_client_got *got, void *context)
{
	struct waiting *waiting = find(client, 0);
	bool now = room_for(client, request);

	if (!waiting || (request->verb == BROKER_CPU && !now))
		return 0;
	*waiting = (struct waiting){*request, now, got, context};
	waiting->request.id = client->next_id + 1;
	if (now && broker_message_send(client->fd, &waiting->request, sizeof(waiting->request), -1)) {
		waiting->request.id = 0;
		return 0;
	}
	client->unsent += !now;
	return ++client->next_id;
}

void broker_client_cancel(struct broker_client *client, uint64_t id)
{
	const struct broker_request request = {.id = id, .verb = BROKER_CANCEL};
	struct waiting *waiting = id ? find(client, id) : NULL;

	if (!waiting)
		return;
	waiting->request.id = 0;
	if (!waiting->sent) {
		client->unsent--;
		return;
	}
	(void)broker_message_send(client->fd, &request, sizeof(request), -1);
	send_next(client);
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
			waiting->request.id = 0;
		if (waiting)
			copy.got(copy.context, &reply, fd);
		else if (fd >= 0)
			close(fd);
	}
	send_next(client);
	return got == -EAGAIN;
}

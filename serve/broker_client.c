/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/broker_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct broker_client {
	int fd;
	uint64_t next_id;
	size_t unsent; /* of the questions that wait, those that are not sent */
	struct waiting {
		struct broker_question question; /* id 0: free */
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
		if (client->waiting[i].question.id == id)
			return &client->waiting[i];
	return NULL;
}

/* ---- turns */

static size_t room_for_files(const struct broker_client *client)
{
	size_t room = BROKER_CLIENT_FILES_AT_ONCE;

	for (size_t i = 0; i < BROKER_CLIENT_WAITING_MAX && room; i++)
		room -= client->waiting[i].question.id && client->waiting[i].sent &&
		    client->waiting[i].question.verb == BROKER_OPEN;
	return room;
}

/* How many more questions of that kind its sampler may get now. */
static size_t room_for(const struct broker_client *client, const struct broker_question *question)
{
	const bool cpu = question->verb == BROKER_CPU;
	size_t room = cpu ? BROKER_CLIENT_CPU_AT_ONCE : BROKER_CLIENT_PROFILES_AT_ONCE;

	if (question->verb == BROKER_OPEN)
		return room_for_files(client);
	if (!cpu && question->verb != BROKER_PROFILE && question->verb != BROKER_SNAPSHOT)
		return 1; /* such a question asks no sampler, or each only once */
	for (size_t i = 0; i < BROKER_CLIENT_WAITING_MAX && room; i++) {
		const struct waiting *other = &client->waiting[i];

		room -= other->question.id && other->sent && other->question.server == question->server &&
		    (other->question.verb == BROKER_CPU) == cpu &&
		    (cpu || other->question.verb == BROKER_PROFILE ||
		        other->question.verb == BROKER_SNAPSHOT);
	}
	return room;
}

/* Of the questions whose turn it is, the one that has waited longest. */
static struct waiting *next_in_turn(struct broker_client *client)
{
	struct waiting *next = NULL;

	for (size_t i = 0; i < BROKER_CLIENT_WAITING_MAX; i++) {
		struct waiting *waiting = &client->waiting[i];

		if (waiting->question.id && !waiting->sent &&
		    (!next || waiting->question.id < next->question.id) &&
		    room_for(client, &waiting->question))
			next = waiting;
	}
	return next;
}

static void send_next(struct broker_client *client)
{
	struct waiting *next;

	while (client->unsent && (next = next_in_turn(client))) {
		if (broker_message_send(client->fd, &next->question, sizeof(next->question), -1))
			return; /* no room now: it is sent after the next reply */
		next->sent = true;
		client->unsent--;
	}
}

uint64_t broker_client_ask(struct broker_client *client, const struct broker_question *question,
    broker_client_got *got, void *context)
{
	struct waiting *waiting = find(client, 0);
	bool now = room_for(client, question);

	if (!waiting || (question->verb == BROKER_CPU && !now))
		return 0;
	*waiting = (struct waiting){*question, now, got, context};
	waiting->question.id = client->next_id + 1;
	if (now && broker_message_send(client->fd, &waiting->question, sizeof(waiting->question), -1)) {
		waiting->question.id = 0;
		return 0;
	}
	client->unsent += !now;
	return ++client->next_id;
}

void broker_client_cancel(struct broker_client *client, uint64_t id)
{
	const struct broker_question question = {.id = id, .verb = BROKER_CANCEL};
	struct waiting *waiting = id ? find(client, id) : NULL;

	if (!waiting)
		return;
	waiting->question.id = 0;
	if (!waiting->sent) {
		client->unsent--;
		return;
	}
	(void)broker_message_send(client->fd, &question, sizeof(question), -1);
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
			waiting->question.id = 0;
		if (waiting)
			copy.got(copy.context, &reply, fd);
		else if (fd >= 0)
			close(fd);
	}
	send_next(client);
	return got == -EAGAIN;
}

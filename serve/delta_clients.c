/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/delta_clients.h"

#include "pprof/text/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct delta_client {
	struct delta_client *next; /* the client that has asked last comes first */
	char name[DELTA_CLIENTS_NAME_BYTES];
	struct process_key key;
	struct blob *profile;
};

struct delta_clients {
	struct delta_client *first;
	size_t count, bytes;
	int64_t since_unix_ns; /* an earlier server may have sent profiles of processes that began before */
	int64_t forgotten_unix_ns; /* when a client was last forgotten; 0: never */
};

struct delta_clients *delta_clients_new(void)
{
	struct delta_clients *clients = calloc(1, sizeof(*clients));

	if (clients)
		clients->since_unix_ns = clock_unix_ns();
	return clients;
}

static void forget(struct delta_clients *clients, struct delta_client **link)
{
	struct delta_client *client = *link;

	*link = client->next;
	clients->count--;
	clients->bytes -= client->profile->length;
	blob_drop(client->profile);
	free(client);
}

static struct delta_client **find(
    struct delta_clients *clients, const char *name, const struct process_key *key)
{
	struct delta_client **link = &clients->first;

	while (*link &&
	    ((*link)->key.pid != key->pid || (*link)->key.start_unix_ns != key->start_unix_ns ||
	        (*link)->key.server != key->server || strcmp((*link)->name, name) != 0))
		link = &(*link)->next;
	return link;
}

struct blob *delta_clients_last(
    struct delta_clients *clients, const char *name, const struct process_key *key, bool *unknown)
{
	struct delta_client **link = find(clients, name, key);

	*unknown = !*link &&
	    (key->start_unix_ns < clients->since_unix_ns || key->start_unix_ns < clients->forgotten_unix_ns);
	return *link ? blob_hold((*link)->profile) : NULL;
}

static void make_room(struct delta_clients *clients)
{
	while (clients->count > DELTA_CLIENTS_MAX ||
	    (clients->bytes > DELTA_CLIENTS_BYTES && clients->count > 1)) {
		struct delta_client **link = &clients->first;

		while ((*link)->next)
			link = &(*link)->next;
		forget(clients, link);
		clients->forgotten_unix_ns = clock_unix_ns();
	}
}

void delta_clients_note(
    struct delta_clients *clients, const char *name, const struct process_key *key, struct blob *profile)
{
	struct delta_client **link = find(clients, name, key), *client;

	if (*link)
		forget(clients, link);
	client = calloc(1, sizeof(*client));
	if (!client) {
		clients->forgotten_unix_ns = clock_unix_ns();
		return;
	}
	snprintf(client->name, sizeof(client->name), "%s", name);
	client->key = *key;
	client->profile = blob_hold(profile);
	client->next = clients->first;
	clients->first = client;
	clients->count++;
	clients->bytes += profile->length;
	make_room(clients);
}

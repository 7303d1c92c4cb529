/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/connection_set.h"

#include "sampler/core/control_peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

struct connection_set_client {
	struct client_key name;
	size_t count;
};

static struct client_key name_of(const struct sockaddr *address, int fd)
{
	struct client_key name = {.family = address ? address->sa_family : AF_UNIX};

	if (name.family == AF_INET) {
		name.number = ((const struct sockaddr_in *)address)->sin_addr.s_addr;
	} else if (name.family == AF_INET6) {
		const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(v6)) {
			name.family = AF_INET;
			name.number = v6->s6_addr32[3];
		} else {
			memcpy(&name.number, v6->s6_addr, sizeof(name.number));
		}
	} else {
		name.number = control_peer_user(fd);
	}
	return name;
}

static struct connection_set_client *client_of(
    const struct connection_set *set, const struct client_key *name)
{
	struct connection_set_client *client;

	for (const struct connection_set_member *at = set->first; at; at = at->next)
		if (at->client->name.family == name->family && at->client->name.number == name->number)
			return at->client;
	client = calloc(1, sizeof(*client));
	if (client)
		client->name = *name;
	return client;
}

int connection_set_add(struct connection_set *set, struct connection_set_member *member,
    const struct sockaddr *address, int fd, uint64_t now_ns)
{
	const struct client_key name = name_of(address, fd);
	struct connection_set_client *client = client_of(set, &name);

	if (!client)
		return -ENOMEM;
	client->count++;
	*member = (struct connection_set_member){.next = set->first,
	    .link = &set->first,
	    .client = client,
	    .name = name,
	    .state = CONNECTION_SET_READING,
	    .since_ns = now_ns};
	if (member->next)
		member->next->link = &member->next;
	set->first = member;
	set->count++;
	return 0;
}

void connection_set_remove(struct connection_set *set, struct connection_set_member *member)
{
	if (!member->link)
		return;
	*member->link = member->next;
	if (member->next)
		member->next->link = member->link;
	member->link = NULL;
	set->count--;
	if (--member->client->count == 0)
		free(member->client);
}

struct connection_set_member *connection_set_choose(
    const struct connection_set *set, const struct connection_set_member *newest)
{
	struct connection_set_member *oldest[3] = {NULL};
	size_t most = 0, reading = 0;

	for (struct connection_set_member *at = set->first; at; at = at->next)
		most = at->client->count > most ? at->client->count : most;
	for (struct connection_set_member *at = set->first; at; at = at->next) {
		struct connection_set_member **of_state = &oldest[at->state];

		if (at == newest || at->client->count < most)
			continue;
		reading += at->state == CONNECTION_SET_READING;
		if (!*of_state || at->since_ns < (*of_state)->since_ns)
			*of_state = at;
	}
	if (reading < CONNECTION_SET_READING_MIN && oldest[CONNECTION_SET_SENDING])
		return oldest[CONNECTION_SET_SENDING];
	if (reading < CONNECTION_SET_READING_MIN && oldest[CONNECTION_SET_WORKING])
		return oldest[CONNECTION_SET_WORKING];
	return oldest[CONNECTION_SET_READING];
}

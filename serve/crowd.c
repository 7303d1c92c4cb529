/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/crowd.h"

#include "sampler/control/control_peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

struct crowd_client {
	struct crowd_name name;
	size_t count;
};

static struct crowd_name name_of(const struct sockaddr *address, int fd)
{
	struct crowd_name name = {.family = address ? address->sa_family : AF_UNIX};

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

static struct crowd_client *client_of(const struct crowd *crowd, const struct crowd_name *name)
{
	struct crowd_client *client;

	for (const struct crowd_member *at = crowd->first; at; at = at->next)
		if (at->client->name.family == name->family && at->client->name.number == name->number)
			return at->client;
	client = calloc(1, sizeof(*client));
	if (client)
		client->name = *name;
	return client;
}

int crowd_join(
    struct crowd *crowd, struct crowd_member *member, const struct sockaddr *address, int fd, uint64_t now_ns)
{
	const struct crowd_name name = name_of(address, fd);
	struct crowd_client *client = client_of(crowd, &name);

	if (!client)
		return -ENOMEM;
	client->count++;
	*member = (struct crowd_member){.next = crowd->first,
	    .link = &crowd->first,
	    .client = client,
	    .name = name,
	    .state = CROWD_READING,
	    .since_ns = now_ns};
	if (member->next)
		member->next->link = &member->next;
	crowd->first = member;
	crowd->count++;
	return 0;
}

void crowd_leave(struct crowd *crowd, struct crowd_member *member)
{
	if (!member->link)
		return;
	*member->link = member->next;
	if (member->next)
		member->next->link = member->link;
	member->link = NULL;
	crowd->count--;
	if (--member->client->count == 0)
		free(member->client);
}

struct crowd_member *crowd_gives_way(const struct crowd *crowd, const struct crowd_member *newest)
{
	struct crowd_member *oldest[3] = {NULL};
	size_t most = 0, reading = 0;

	for (struct crowd_member *at = crowd->first; at; at = at->next)
		most = at->client->count > most ? at->client->count : most;
	for (struct crowd_member *at = crowd->first; at; at = at->next) {
		struct crowd_member **of_state = &oldest[at->state];

		if (at == newest || at->client->count < most)
			continue;
		reading += at->state == CROWD_READING;
		if (!*of_state || at->since_ns < (*of_state)->since_ns)
			*of_state = at;
	}
	if (reading < CROWD_READING_MIN && oldest[CROWD_SENDING])
		return oldest[CROWD_SENDING];
	if (reading < CROWD_READING_MIN && oldest[CROWD_WORKING])
		return oldest[CROWD_WORKING];
	return oldest[CROWD_READING];
}

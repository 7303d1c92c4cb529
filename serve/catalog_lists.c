/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog_lists.h"

#include "sampler/control/control_client.h"
#include "sampler/linux/clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static void add(struct catalog_lists *lists, struct control_list *list, uint64_t server, uint64_t said_ns)
{
	lists->items[lists->count] = list;
	lists->servers[lists->count] = server;
	lists->said_ns[lists->count++] = said_ns;
}

void catalog_lists_take(
    struct catalog_lists *lists, const struct broker_reply *reply, int fd, uint64_t now_ns)
{
	struct control_list *list;
	void *bytes;

	if (lists->count == CATALOG_LISTS_MAX || reply->bytes > CONTROL_LIST_BYTES_MAX) {
		close(fd);
		return;
	}
	if (control_client_read(fd, reply->bytes, &bytes))
		return;
	list = calloc(1, sizeof(*list));
	if (list && control_list_parse(list, bytes, (size_t)reply->bytes) == 0)
		add(lists, list, reply->server, now_ns);
	else
		free(list);
	free(bytes);
}

static bool has(const struct catalog_lists *lists, const struct control_list *list)
{
	for (size_t i = 0; i < lists->count; i++)
		if (lists->items[i] == list)
			return true;
	return false;
}

void catalog_lists_keep(
    struct catalog_lists *lists, const struct catalog_lists *last, uint64_t server, uint64_t now_ns)
{
	for (size_t i = 0; i < last->count && lists->count < CATALOG_LISTS_MAX; i++) {
		bool is_old = now_ns - last->said_ns[i] > (uint64_t)CATALOG_LISTS_LATE_MS * CLOCK_NS_PER_MS;

		if (!is_old && (!server || last->servers[i] == server) && !has(lists, last->items[i]))
			add(lists, last->items[i], last->servers[i], last->said_ns[i]);
	}
}

void catalog_lists_renew(struct catalog_lists *lists, struct catalog_lists *next)
{
	for (size_t i = 0; i < lists->count; i++) {
		if (has(next, lists->items[i]))
			continue;
		control_list_fini(lists->items[i]);
		free(lists->items[i]);
	}
	*lists = *next;
	next->count = 0;
}

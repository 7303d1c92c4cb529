/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog_lists.h"

#include "pprof/text/clock.h"
#include "sampler/core/control_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

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
		lists->items[lists->count++] = (struct catalog_lists_item){
		    list, reply->server, now_ns, reply->user, reply->foreign, reply->left_out};
	else
		free(list);
	free(bytes);
}

static bool has(const struct catalog_lists *lists, const struct control_list *list)
{
	for (size_t i = 0; i < lists->count; i++)
		if (lists->items[i].list == list)
			return true;
	return false;
}

void catalog_lists_keep(
    struct catalog_lists *lists, const struct catalog_lists *last, uint64_t server, uint64_t now_ns)
{
	for (size_t i = 0; i < last->count && lists->count < CATALOG_LISTS_MAX; i++) {
		const struct catalog_lists_item *item = &last->items[i];
		bool is_old = now_ns - item->said_ns > (uint64_t)CATALOG_LISTS_LATE_MS * CLOCK_NS_PER_MS;

		if (!is_old && (!server || item->server == server) && !has(lists, item->list))
			lists->items[lists->count++] = *item;
	}
}

void catalog_lists_renew(struct catalog_lists *lists, struct catalog_lists *next)
{
	for (size_t i = 0; i < lists->count; i++) {
		if (has(next, lists->items[i].list))
			continue;
		control_list_fini(lists->items[i].list);
		free(lists->items[i].list);
	}
	*lists = *next;
	next->count = 0;
}

/* ---- who is right */

struct claim {
	struct control_process *process;
	const struct catalog_lists_item *item;
};

static int compare_claims(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	if (a->process->pid != b->process->pid)
		return a->process->pid < b->process->pid ? -1 : 1;
	if (a->item->foreign != b->item->foreign)
		return a->item->foreign ? 1 : -1;
	return a->item->server < b->item->server ? -1 : a->item->server > b->item->server;
}

int catalog_lists_settle(struct catalog_lists *lists)
{
	struct claim *claims, *first;
	size_t count = 0, foreign = 0;

	for (size_t i = 0; i < lists->count; i++) {
		count += lists->items[i].list->process_count;
		foreign += lists->items[i].foreign;
	}
	if (!foreign || !count)
		return 0;
	claims = calloc(count, sizeof(*claims));
	if (!claims)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < lists->count; i++)
		for (size_t p = 0; p < lists->items[i].list->process_count; p++)
			if (lists->items[i].list->processes[p].profiled)
				claims[count++] =
				    (struct claim){&lists->items[i].list->processes[p], &lists->items[i]};
	qsort(claims, count, sizeof(*claims), compare_claims);
	first = claims;
	for (struct claim *claim = claims; claim < claims + count; claim++) {
		if (claim->process->pid != first->process->pid)
			first = claim;
		if (claim->item->foreign && claim->item != first->item)
			claim->process->profiled = false;
	}
	free(claims);
	return 0;
}

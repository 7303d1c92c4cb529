/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the catalog that knows what samplers list now, and what they listed before. */
#include "serve/catalog.h"

#include "pprof/text/clock.h"
#include "sampler/core/control_client.h"

#include <errno.h>
#include <math.h>
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

/* ---- what lists said over time */

enum { STEP_S = 5, PROCESSES_MAX = 20000 };

struct catalog_history_entry {
	struct catalog_history_entry *next;
	struct process_key key;
	struct series history;
	uint64_t seen_ns;
};

/* Adds a point, if one is due. */
static void add_point(struct series *history, const struct catalog_point *point)
{
	static const struct series_shape shape = {.point_bytes = sizeof(*point),
	    .points_max = CATALOG_HISTORY_POINTS,
	    .first_step_ns = (int64_t)STEP_S * CLOCK_NS_PER_S};
	struct catalog_point *points = history->points, *added;

	/* The newest point is what there is now: it is replaced until the next point is due. */
	if (history->count > 1 && point->unix_ns - points[history->count - 2].unix_ns < history->step_ns) {
		points[history->count - 1] = *point;
		return;
	}
	added = series_add(history, &shape);
	if (added)
		*added = *point;
}

static struct catalog_history_entry *find_or_make(
    struct catalog_histories *histories, const struct process_key *key)
{
	struct catalog_history_entry *entry = histories->entries;

	while (entry &&
	    (entry->key.pid != key->pid || entry->key.start_unix_ns != key->start_unix_ns ||
	        entry->key.server != key->server))
		entry = entry->next;
	if (entry || histories->count >= (key->foreign ? PROCESSES_MAX / 2 : PROCESSES_MAX))
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = *key;
	entry->next = histories->entries;
	histories->entries = entry;
	histories->count++;
	return entry;
}

struct series *catalog_histories_note(struct catalog_histories *histories, const struct process_key *key,
    const struct control_process *listed, uint64_t now_ns, int64_t unix_ns)
{
	struct catalog_history_entry *entry = find_or_make(histories, key);
	const struct catalog_point point = {.unix_ns = unix_ns,
	    .inuse_bytes = listed->inuse_bytes,
	    .error_bytes = listed->inuse_bytes_error,
	    .allocated_bytes = listed->alloc_bytes,
	    .rss_bytes = listed->rss_bytes ? (int64_t)listed->rss_bytes : -1};

	if (!entry)
		return NULL;
	entry->seen_ns = now_ns;
	if (isfinite(listed->inuse_bytes))
		add_point(&entry->history, &point);
	return &entry->history;
}

static void forget_before(struct catalog_histories *histories, uint64_t seen_ns)
{
	struct catalog_history_entry **link = &histories->entries;

	while (*link) {
		struct catalog_history_entry *entry = *link;

		if (entry->seen_ns >= seen_ns) {
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		series_fini(&entry->history);
		free(entry);
		histories->count--;
	}
}

void catalog_histories_sweep(struct catalog_histories *histories, uint64_t now_ns)
{
	if (now_ns > SNAPSHOTS_REMEMBERED_NS)
		forget_before(histories, now_ns - SNAPSHOTS_REMEMBERED_NS);
}

void catalog_histories_fini(struct catalog_histories *histories)
{
	forget_before(histories, UINT64_MAX);
}

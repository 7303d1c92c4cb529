/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog_history.h"

#include "pprof/text/clock.h"

#include <math.h>
#include <stdlib.h>

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

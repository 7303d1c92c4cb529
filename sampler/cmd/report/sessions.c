/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/sessions.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

const char *sessions_kind(const struct origin *origin)
{
	return origin->ours || strcmp(origin->period_type, "space") == 0 ? origin->event
	                                                                 : origin->period_type;
}

/* ---- the order of files */

static int compare_sessions(const struct origin *a, const struct origin *b)
{
	int order = compare_numbers(b->session_ns, a->session_ns);

	if (!order)
		order = strcmp(b->session, a->session);
	return order || !*a->session ? order : strcmp(a->host, b->host);
}

/* Of a process the states come first, then its peaks and deltas, and events last. */
static int rank_of(const struct origin *o)
{
	return origin_has_process(o) ? (int)o->kind : ORIGIN_LIVE;
}

/* The states of a process are in the order of time, the exit last whatever the clock said then. */
static int compare_files(const void *left, const void *right, void *context)
{
	const struct sessions *g = context;
	const size_t i = *(const size_t *)left, j = *(const size_t *)right;
	const struct origin *a = g->origins[i], *b = g->origins[j];
	const int orders[] = {
	    compare_sessions(a, b),
	    origin_has_process(b) - origin_has_process(a),
	    compare_numbers(a->pid, b->pid),
	    compare_numbers(g->starts_ns[i], g->starts_ns[j]),
	    (*a->event != '\0') - (*b->event != '\0'),
	    strcmp(a->event, b->event),
	    rank_of(a) - rank_of(b),
	    origin_is_last(a) - origin_is_last(b),
	    compare_numbers(a->time_ns, b->time_ns),
	};
	const size_t count = origin_has_process(a) ? sizeof(orders) / sizeof(orders[0]) : 2;

	for (size_t k = 0; k < count; k++)
		if (orders[k])
			return orders[k];
	return (i > j) - (i < j);
}

static bool is_same_pid(const struct origin *a, const struct origin *b)
{
	return origin_has_process(a) && origin_has_process(b) && a->pid == b->pid &&
	    compare_sessions(a, b) == 0;
}

/* The start of the process whose heap began nearest to these events, of those with their pid and program.
 * order: begins with the files of that pid. */
static int64_t nearest_start(
    const struct sessions *g, const size_t *order, size_t count, const struct origin *o)
{
	int64_t start_ns = o->start_ns, least_ns = INT64_MAX;

	for (size_t i = 0; i < count && is_same_pid(g->origins[order[i]], o); i++) {
		const struct origin *heap = g->origins[order[i]];
		const int64_t apart_ns = llabs(heap->start_ns - o->start_ns);

		if (*heap->event || apart_ns >= least_ns || strcmp(heap->program, o->program) != 0)
			continue;
		least_ns = apart_ns;
		start_ns = heap->start_ns;
	}
	return start_ns;
}

/* Events are first seen at another time than the heap of their process. */
static void join_events(struct sessions *g)
{
	size_t first = 0; /* of the files of this pid */

	for (size_t i = 0; i < g->file_count; i++) {
		const struct origin *o = g->origins[g->order[i]];
		const struct origin *before = i ? g->origins[g->order[i - 1]] : NULL;

		if (!before || !is_same_pid(before, o))
			first = i;
		if (!*o->event)
			continue;
		if (i > first && *before->event && before->start_ns == o->start_ns)
			g->starts_ns[g->order[i]] = g->starts_ns[g->order[i - 1]];
		else
			g->starts_ns[g->order[i]] =
			    nearest_start(g, g->order + first, g->file_count - first, o);
	}
}

/* ---- processes */

static void add_file(struct sessions *g, struct sessions_process *process, size_t place)
{
	const size_t file = g->order[place];
	const struct origin *o = g->origins[file], *first = g->origins[g->order[process->first]];
	const int64_t start_ns = o->start_ns ? o->start_ns : o->time_ns;

	process->count++;
	if (start_ns < process->start_ns)
		process->start_ns = start_ns;
	if (strcmp(o->event, first->event) != 0)
		return;
	process->state_count += rank_of(o) == ORIGIN_LIVE;
	process->delta_first += rank_of(o) != ORIGIN_DELTA;
	if (rank_of(o) == ORIGIN_PEAK)
		process->peak = (long)file;
	if (rank_of(o) == ORIGIN_LIVE || (rank_of(o) == ORIGIN_PEAK && !process->state_count))
		process->newest = (long)file;
}

static void split(struct sessions *g)
{
	for (size_t i = 0; i < g->file_count; i++) {
		const struct origin *o = g->origins[g->order[i]];
		const struct origin *before = i ? g->origins[g->order[i - 1]] : NULL;
		const bool is_session = !before || compare_sessions(before, o) != 0;

		if (is_session)
			g->sessions[g->session_count++] = (struct sessions_item){g->process_count, 0};
		if (is_session || !is_same_pid(before, o) ||
		    g->starts_ns[g->order[i - 1]] != g->starts_ns[g->order[i]]) {
			g->sessions[g->session_count - 1].count++;
			g->processes[g->process_count++] = (struct sessions_process){.first = i,
			    .start_ns = INT64_MAX,
			    .newest = SESSIONS_NONE,
			    .peak = SESSIONS_NONE};
		}
		add_file(g, &g->processes[g->process_count - 1], i);
	}
}

static int compare_starts(const void *left, const void *right)
{
	const struct sessions_process *a = left, *b = right;
	const int order = compare_numbers(a->start_ns, b->start_ns);

	return order ? order : (a->first > b->first) - (a->first < b->first);
}

int sessions_make(struct sessions *g, const struct origin *const *origins, size_t count, const char *kind)
{
	*g = (struct sessions){.origins = origins};
	g->order = calloc(count + 1, sizeof(*g->order));
	g->times_ns = calloc(count + 1, sizeof(*g->times_ns));
	g->starts_ns = calloc(count + 1, sizeof(*g->starts_ns));
	g->processes = calloc(count + 1, sizeof(*g->processes));
	g->sessions = calloc(count + 1, sizeof(*g->sessions));
	if (!g->order || !g->times_ns || !g->starts_ns || !g->processes || !g->sessions)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		g->starts_ns[i] = origins[i]->start_ns;
		if (!kind || strcmp(sessions_kind(origins[i]), kind) == 0)
			g->order[g->file_count++] = i;
	}
	qsort_r(g->order, g->file_count, sizeof(*g->order), compare_files, g);
	join_events(g);
	qsort_r(g->order, g->file_count, sizeof(*g->order), compare_files, g);
	for (size_t i = 0; i < g->file_count; i++)
		g->times_ns[i] = origins[g->order[i]]->time_ns;
	split(g);
	for (size_t i = 0; i < g->session_count; i++)
		qsort(g->processes + g->sessions[i].first, g->sessions[i].count, sizeof(*g->processes),
		    compare_starts);
	return 0;
}

void sessions_fini(struct sessions *g)
{
	free(g->order);
	free(g->times_ns);
	free(g->starts_ns);
	free(g->processes);
	free(g->sessions);
	memset(g, 0, sizeof(*g));
}

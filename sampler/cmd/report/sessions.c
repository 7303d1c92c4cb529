/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sorting {
	const struct origin *const *origins;
	int64_t unnamed_ns; /* time of the newest file without a session */
};

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int64_t session_start(const struct sorting *s, const struct origin *o)
{
	return *o->session ? o->session_ns : s->unnamed_ns;
}

static bool has_events(const struct origin *o)
{
	return *o->event != '\0';
}

static int compare_sessions(const struct sorting *s, const struct origin *a, const struct origin *b)
{
	int order = compare_numbers(session_start(s, b), session_start(s, a));

	if (!order)
		order = strcmp(b->session, a->session);
	return order || !*a->session ? order : strcmp(a->host, b->host);
}

/* 0 if both are heap profiles of one process, or both are profiles of its events. */
static int compare_processes(const struct origin *a, const struct origin *b)
{
	int order = origin_has_process(b) - origin_has_process(a);

	if (order || !origin_has_process(a))
		return order;
	order = compare_numbers(a->pid, b->pid);
	if (!order)
		order = has_events(a) - has_events(b);
	return order ? order : compare_numbers(a->start_ns, b->start_ns);
}

/* The states of a process are in the order of time, the exit last whatever the clock said then. */
static int compare_files(const void *left, const void *right, void *context)
{
	const struct sorting *s = context;
	const size_t i = *(const size_t *)left, j = *(const size_t *)right;
	const struct origin *a = s->origins[i], *b = s->origins[j];
	int order = compare_sessions(s, a, b);

	if (!order)
		order = compare_processes(a, b);
	if (!order && origin_has_process(a)) {
		order = strcmp(a->event, b->event);
		if (!order)
			order = origin_is_last(a) - origin_is_last(b);
		if (!order)
			order = compare_numbers(a->time_ns, b->time_ns);
	}
	return order ? order : (i > j) - (i < j);
}

/* ---- processes */

size_t sessions_files(const struct sessions_process *process)
{
	return process->heap_count + process->event_count;
}

size_t sessions_file(const struct sessions *g, const struct sessions_process *process, size_t i)
{
	return g->order[i < process->heap_count ? process->heap_first + i
	                                        : process->event_first + i - process->heap_count];
}

static int64_t start_of(const struct origin *o)
{
	return o->start_ns ? o->start_ns : o->time_ns;
}

/* The process with heap profiles that the events at that place in the order belong to: events are first seen
 * at another time than the heap. NULL if there is none. */
static struct sessions_process *find_heap(struct sessions *g, size_t place)
{
	const struct sessions_item *session = &g->sessions[g->session_count - 1];
	const struct origin *o = g->origins[g->order[place]];

	for (size_t p = g->process_count; p-- > session->first;) {
		struct sessions_process *process = &g->processes[p];
		const struct origin *first = g->origins[sessions_file(g, process, 0)];

		if (first->pid != o->pid || !origin_has_process(first))
			return NULL;
		if (process->heap_count && !process->event_count && strcmp(first->program, o->program) == 0)
			return process;
	}
	return NULL;
}

static struct sessions_process *begin_process(struct sessions *g, size_t place)
{
	const struct origin *o = g->origins[g->order[place]];
	struct sessions_process *process =
	    has_events(o) && origin_has_process(o) ? find_heap(g, place) : NULL;

	if (!process) {
		g->sessions[g->session_count - 1].count++;
		process = &g->processes[g->process_count++];
		*process = (struct sessions_process){.heap_first = place, .start_ns = start_of(o)};
	}
	process->event_first = place;
	return process;
}

static void split(struct sessions *g, const struct sorting *s)
{
	struct sessions_process *process = NULL;

	for (size_t i = 0; i < g->file_count; i++) {
		const struct origin *o = g->origins[g->order[i]];
		const struct origin *before = i ? g->origins[g->order[i - 1]] : NULL;
		const bool is_session = !before || compare_sessions(s, before, o) != 0;

		if (is_session)
			g->sessions[g->session_count++] = (struct sessions_item){
			    g->process_count, 0, session_start(s, o), *o->session != '\0'};
		if (is_session || !origin_has_process(o) || compare_processes(before, o) != 0)
			process = begin_process(g, i);
		if (has_events(o))
			process->event_count++;
		else
			process->heap_count++;
		if (start_of(o) < process->start_ns)
			process->start_ns = start_of(o);
	}
}

bool sessions_is_peak(const struct sessions *g, size_t file)
{
	return origin_has_process(g->origins[file]) && g->origins[file]->kind == ORIGIN_PEAK;
}

bool sessions_is_delta(const struct sessions *g, size_t file)
{
	return origin_has_process(g->origins[file]) && g->origins[file]->kind == ORIGIN_DELTA;
}

static void find_states(struct sessions *g, struct sessions_process *process)
{
	const size_t count = process->heap_count ? process->heap_count : process->event_count;

	process->newest = process->peak = SESSIONS_NONE;
	for (size_t i = 0; i < count; i++) {
		const size_t file = sessions_file(g, process, i);

		if (sessions_is_peak(g, file))
			process->peak = (long)file;
		else if (!sessions_is_delta(g, file))
			process->newest = (long)file;
	}
	if (process->newest == SESSIONS_NONE)
		process->newest = process->peak;
}

static int compare_starts(const void *left, const void *right)
{
	const struct sessions_process *a = left, *b = right;
	const int order = compare_numbers(a->start_ns, b->start_ns);

	return order ? order : (a->heap_first > b->heap_first) - (a->heap_first < b->heap_first);
}

int sessions_make(struct sessions *g, const struct origin *const *origins, size_t count)
{
	struct sorting s = {.origins = origins};

	*g = (struct sessions){.origins = origins, .file_count = count};
	g->order = calloc(count + 1, sizeof(*g->order));
	g->processes = calloc(count + 1, sizeof(*g->processes));
	g->sessions = calloc(count + 1, sizeof(*g->sessions));
	if (!g->order || !g->processes || !g->sessions)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		g->order[i] = i;
		if (!*origins[i]->session && origins[i]->time_ns > s.unnamed_ns)
			s.unnamed_ns = origins[i]->time_ns;
	}
	qsort_r(g->order, count, sizeof(*g->order), compare_files, &s);
	split(g, &s);
	for (size_t i = 0; i < g->process_count; i++)
		find_states(g, &g->processes[i]);
	for (size_t i = 0; i < g->session_count; i++)
		qsort(g->processes + g->sessions[i].first, g->sessions[i].count, sizeof(*g->processes),
		    compare_starts);
	return 0;
}

void sessions_fini(struct sessions *g)
{
	free(g->order);
	free(g->processes);
	free(g->sessions);
	memset(g, 0, sizeof(*g));
}

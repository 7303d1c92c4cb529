/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- order */

/* What the comparison of two files needs beside them. */
struct sorting {
	const struct origin *const *origins;
	int64_t unnamed_ns;    /* time of the newest file without a session */
	const char **programs; /* of each file */
};

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int64_t session_start(const struct sorting *s, const struct origin *o)
{
	return *o->session ? o->session_ns : s->unnamed_ns;
}

static int compare_sessions(const struct sorting *s, const struct origin *a, const struct origin *b)
{
	int order = compare_numbers(session_start(s, b), session_start(s, a));

	if (!order)
		order = strcmp(b->session, a->session);
	return order || !*a->session ? order : strcmp(a->host, b->host);
}

static bool is_exit(const struct origin *o)
{
	return origin_is_last(o);
}

/* Of one process: by time, the exit last whatever the clock said then. Among files without a session
 * time alone tells one process from the next with its pid. */
static int compare_states(const struct origin *a, const struct origin *b)
{
	int order = 0;

	if (*a->session)
		order = is_exit(a) - is_exit(b);
	if (!order)
		order = compare_numbers(a->time_ns, b->time_ns);
	return order ? order : is_exit(a) - is_exit(b);
}

static int compare_processes(const struct sorting *s, size_t i, size_t j)
{
	const struct origin *a = s->origins[i], *b = s->origins[j];
	int order = strcmp(a->host, b->host);

	if (!order)
		order = compare_numbers(a->pid, b->pid);
	if (!order)
		order = strcmp(s->programs[i], s->programs[j]);
	if (!order && !*a->session)
		order = strcmp(a->build_id, b->build_id);
	if (!order)
		order = (*a->event != '\0') - (*b->event != '\0');
	return order ? order : compare_numbers(a->start_ns, b->start_ns);
}

static int compare_files(const void *left, const void *right, void *context)
{
	const struct sorting *s = context;
	size_t i = *(const size_t *)left, j = *(const size_t *)right;
	const struct origin *a = s->origins[i], *b = s->origins[j];
	int order = compare_sessions(s, a, b);

	if (!order)
		order = origin_has_process(b) - origin_has_process(a);
	if (!order && origin_has_process(a)) {
		order = compare_processes(s, i, j);
		if (!order)
			order = strcmp(a->event, b->event);
		if (!order)
			order = compare_states(a, b);
	}
	return order ? order : (i > j) - (i < j);
}

/* ---- programs */

static bool has_events(const struct origin *o)
{
	return origin_has_process(o) && *o->session && *o->event && o->start_ns;
}

/* Events of one process, which began once, by time. */
static int compare_events(const void *left, const void *right, void *context)
{
	const struct sorting *s = context;
	const struct origin *a = s->origins[*(const size_t *)left], *b = s->origins[*(const size_t *)right];
	int order = strcmp(a->session, b->session);

	if (!order)
		order = strcmp(a->host, b->host);
	if (!order)
		order = compare_numbers(a->pid, b->pid);
	if (!order)
		order = compare_numbers(a->start_ns, b->start_ns);
	return order ? order : compare_numbers(a->time_ns, b->time_ns);
}

/* The last events of a program are written when its process may execute another one already, and may bear
 * that one's name: the first of them has the right one. */
static int programs_find(struct sorting *s, size_t count)
{
	size_t *events = calloc(count + 1, sizeof(*events)), found = 0;

	s->programs = calloc(count + 1, sizeof(*s->programs));
	for (size_t i = 0; i < count && events && s->programs; i++) {
		s->programs[i] = s->origins[i]->program;
		if (has_events(s->origins[i]))
			events[found++] = i;
	}
	if (events && s->programs)
		qsort_r(events, found, sizeof(*events), compare_events, s);
	for (size_t i = 1; i < found && s->programs; i++) {
		const struct origin *before = s->origins[events[i - 1]], *o = s->origins[events[i]];

		if (before->start_ns == o->start_ns && before->pid == o->pid &&
		    strcmp(before->session, o->session) == 0 && strcmp(before->host, o->host) == 0)
			s->programs[events[i]] = s->programs[events[i - 1]];
	}
	free(events);
	return events && s->programs ? 0 : -ENOMEM;
}

/* ---- groups */

/* Is the file of another process than the one before it? */
static bool is_next(const struct sorting *s, size_t file_before, size_t file)
{
	const struct origin *before = s->origins[file_before], *o = s->origins[file];

	if (!origin_has_process(before) || !origin_has_process(o))
		return true;
	if (*o->session) /* the events of a process were first seen at another time than its heap */
		return before->pid != o->pid || strcmp(s->programs[file_before], s->programs[file]) != 0 ||
		    (!*before->event == !*o->event && before->start_ns != o->start_ns);
	return !origin_same_process(before, o) ||
	    (is_exit(before) && before->time_ns < o->time_ns && strcmp(before->event, o->event) == 0);
}

static int64_t start_of(const struct origin *o)
{
	return o->start_ns ? o->start_ns : o->time_ns;
}

static void split_processes(struct sessions *g, const struct sorting *s)
{
	for (size_t i = 0; i < g->file_count; i++) {
		const struct origin *o = g->origins[g->order[i]];
		const struct origin *before = i ? g->origins[g->order[i - 1]] : NULL;
		bool session = !before || compare_sessions(s, before, o) != 0;
		struct sessions_process *process;

		if (session)
			g->sessions[g->session_count++] = (struct sessions_item){
			    g->process_count, 0, session_start(s, o), *o->session != '\0'};
		if (session || is_next(s, g->order[i - 1], g->order[i])) {
			g->sessions[g->session_count - 1].count++;
			g->processes[g->process_count++] =
			    (struct sessions_process){i, 0, 0, g->session_count - 1, start_of(o)};
		}
		process = &g->processes[g->process_count - 1];
		process->count++;
		process->heap_count += !*o->event;
		if (start_of(o) < process->start_ns)
			process->start_ns = start_of(o);
	}
}

static int compare_starts(const void *left, const void *right)
{
	const struct sessions_process *a = left, *b = right;
	int order = compare_numbers(a->start_ns, b->start_ns);

	return order ? order : (a->first > b->first) - (a->first < b->first);
}

int sessions_make(struct sessions *g, const struct origin *const *origins, size_t count)
{
	struct sorting s = {.origins = origins};

	*g = (struct sessions){.origins = origins, .file_count = count};
	g->order = calloc(count + 1, sizeof(*g->order));
	g->processes = calloc(count + 1, sizeof(*g->processes));
	g->sessions = calloc(count + 1, sizeof(*g->sessions));
	if (!g->order || !g->processes || !g->sessions || programs_find(&s, count)) {
		free(s.programs);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		g->order[i] = i;
		if (!*origins[i]->session && origins[i]->time_ns > s.unnamed_ns)
			s.unnamed_ns = origins[i]->time_ns;
	}
	qsort_r(g->order, count, sizeof(*g->order), compare_files, &s);
	split_processes(g, &s);
	free(s.programs);
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

/* ---- states */

bool sessions_is_peak(const struct sessions *g, size_t file)
{
	return origin_has_process(g->origins[file]) && g->origins[file]->kind == ORIGIN_PEAK;
}

bool sessions_is_delta(const struct sessions *g, size_t file)
{
	return origin_has_process(g->origins[file]) && g->origins[file]->kind == ORIGIN_DELTA;
}

/* The last of a process' files of a kind; a profile that is not of one process is its only state. */
static long last_of(const struct sessions *g, const struct sessions_process *p, enum origin_kind kind)
{
	size_t count = p->heap_count ? p->heap_count : p->count;
	long found = SESSIONS_NONE;

	for (size_t i = p->first; i < p->first + count; i++) {
		const struct origin *o = g->origins[g->order[i]];

		if (origin_has_process(o) ? o->kind == kind : kind == ORIGIN_LIVE)
			found = (long)g->order[i];
	}
	return found;
}

long sessions_newest(const struct sessions *g, size_t process)
{
	long newest = last_of(g, &g->processes[process], ORIGIN_LIVE);

	return newest == SESSIONS_NONE ? last_of(g, &g->processes[process], ORIGIN_PEAK) : newest;
}

long sessions_peak(const struct sessions *g, size_t process)
{
	return last_of(g, &g->processes[process], ORIGIN_PEAK);
}

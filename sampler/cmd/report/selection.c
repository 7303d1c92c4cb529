/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/selection.h"

#include "pprof/analysis/trend.h"
#include "pprof/table/array.h"
#include "sampler/cmd/report/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct candidates {
	struct sessions sessions; /* of the files of one kind */
	size_t first, end;        /* processes of the sessions that count */
	size_t capacity;          /* of the selection's pairs */
	bool is_heap;             /* their kind */
};

/* The heap profiles if there are any, otherwise the profiles of the first one's kind. */
static int candidates_find(
    struct candidates *c, struct selection *s, const struct origin *const *origins, size_t count)
{
	const char *kind = count ? sessions_kind(origins[0]) : "";
	int err;

	for (size_t i = 0; i < count; i++)
		if (!*sessions_kind(origins[i]))
			kind = "";
	c->is_heap = !*kind;
	err = sessions_make(&c->sessions, origins, count, kind);
	s->events_left = count - c->sessions.file_count;
	return err;
}

static int sessions_choose(struct candidates *c, struct selection *s, int32_t number)
{
	const struct sessions *g = &c->sessions;

	s->session_count = g->session_count;
	c->end = g->process_count;
	if (number == SESSION_ALL || !g->session_count)
		return 0;
	s->session = number == SESSION_DEFAULT ? SESSION_NEWEST : (size_t)number;
	if (s->session > g->session_count)
		return -ERANGE;
	c->first = g->sessions[s->session - 1].first;
	c->end = c->first + g->sessions[s->session - 1].count;
	return 0;
}

static int pair_add(struct selection *s, struct candidates *c, size_t file, size_t column, size_t process)
{
	if (array_reserve(&s->pairs, &c->capacity, s->count + 1, sizeof(*s->pairs)))
		return -ENOMEM;
	s->pairs[s->count++] = (struct selection_pair){.file = file, .column = column, .process = process};
	return 0;
}

/* Adds every delta, or every file. */
static int add_all(struct selection *s, struct candidates *c, bool deltas)
{
	int err = 0;

	for (size_t p = c->first; p < c->end; p++) {
		const struct sessions_process *process = &c->sessions.processes[p];
		const size_t first = deltas ? process->delta_first : 0;

		for (size_t i = first; i < process->count && !err; i++)
			err = pair_add(s, c, c->sessions.order[process->first + i], 0, p);
		s->process_count += first < process->count;
	}
	return err ? err : s->count ? 0 : -ENODATA;
}

/* How many of its states are of a process that ran on. */
static size_t running_states(const struct sessions *g, const struct sessions_process *process)
{
	const int64_t *times_ns = g->times_ns + process->first;

	if (!process->state_count || !origin_is_last(g->origins[process->newest]))
		return process->state_count;
	return moments_running(times_ns, process->state_count - 1, times_ns[process->state_count - 1]);
}

/* Adds the states of the only process. */
static int add_series(struct selection *s, struct candidates *c, size_t p)
{
	const struct sessions_process *process = &c->sessions.processes[p];
	int err = 0;

	for (size_t i = 0; i < process->state_count && !err; i++)
		err = pair_add(s, c, c->sessions.order[process->first + i], i, p);
	s->series_count = s->count ? s->count : 1;
	s->growth_count = running_states(&c->sessions, process);
	s->has_peak = process->peak != SESSIONS_NONE;
	if (!err && s->has_peak)
		err = pair_add(s, c, (size_t)process->peak, s->count, p);
	s->column_count = s->count;
	s->now = s->state == READ_PEAK && s->has_peak ? s->count - 1 : s->series_count - 1;
	return err;
}

static int add_processes(struct selection *s, struct candidates *c, bool one_column)
{
	const bool newest = !one_column || s->state != READ_PEAK;
	int err = 0;

	s->has_peak = s->state == READ_PEAK;
	for (size_t p = c->first; p < c->end && !one_column; p++)
		s->has_peak |= c->sessions.processes[p].peak != SESSIONS_NONE;
	s->column_count = newest && s->has_peak ? 2 : 1;
	s->now = s->state == READ_PEAK ? s->column_count - 1 : 0;
	for (size_t p = c->first; p < c->end && !err; p++) {
		const struct sessions_process *process = &c->sessions.processes[p];
		const bool has_peak = process->peak != SESSIONS_NONE;

		if (process->newest == SESSIONS_NONE)
			continue;
		if (newest)
			err = pair_add(s, c, (size_t)process->newest, 0, p);
		if (!err && s->has_peak)
			err = pair_add(s, c, (size_t)(has_peak ? process->peak : process->newest),
			    s->column_count - 1, p);
		s->peaks_missing += s->has_peak && !has_peak;
	}
	return err;
}

/* ---- several processes added up, moment by moment */

/* Adds one process at one moment. What an ended process has allocated is in its last profile. */
static int add_moment(
    struct selection *s, struct candidates *c, const struct moments_process *running, size_t p, size_t moment)
{
	const struct sessions_process *process = &c->sessions.processes[p];
	const struct moments_state state = moments_state_at(running, s->growth_times_ns[moment]);
	const size_t place = state.over ? process->state_count - 1 : state.index;

	if (!state.begun)
		return 0;
	if (pair_add(s, c, c->sessions.order[process->first + place], s->column_count + moment, p))
		return -ENOMEM;
	s->pairs[s->count - 1].is_added_up = true;
	s->pairs[s->count - 1].ended = state.over;
	return 0;
}

static int add_moments(struct selection *s, struct candidates *c, const struct moments_process *running)
{
	const int moments = moments_choose(s->growth_times_ns, MOMENTS_MOST, running, c->end - c->first);
	int err = moments < 0 ? moments : 0;

	if (moments >= 0)
		s->growth_count = (size_t)moments;
	if (moments < TREND_POINTS_LEAST)
		return err;
	for (size_t moment = 0; moment < s->growth_count; moment++)
		for (size_t p = c->first; p < c->end && !err; p++)
			err = add_moment(s, c, &running[p - c->first], p, moment);
	s->growth_first = s->column_count;
	s->column_count += s->growth_count;
	return err;
}

static int add_growth(struct selection *s, struct candidates *c)
{
	const struct sessions *g = &c->sessions;
	struct moments_process *running = calloc(g->process_count + 1, sizeof(*running));
	int err = running ? 0 : -ENOMEM;

	for (size_t p = c->first; p < c->end && !err; p++) {
		const struct sessions_process *process = &g->processes[p];
		const int64_t *times_ns = g->times_ns + process->first;
		const size_t count = running_states(g, process);

		running[p - c->first] = (struct moments_process){.start_ns = process->start_ns,
		    .times_ns = times_ns,
		    .count = count,
		    .end_ns = count < process->state_count ? times_ns[count] : 0};
	}
	if (!err)
		err = add_moments(s, c, running);
	free(running);
	return err;
}

static int choose(struct selection *s, struct candidates *c, const struct selection_choice *choice)
{
	size_t process = c->first;
	int err;

	s->state = choice->state;
	s->column_count = s->series_count = 1;
	for (size_t p = c->first; p < c->end; p++) {
		if (c->sessions.processes[p].newest == SESSIONS_NONE)
			continue;
		process = p;
		s->process_count++;
	}
	if (s->state == READ_NEWEST && !s->process_count)
		s->state = READ_DELTA;
	if (s->state == READ_DELTA || s->state == READ_ALL) {
		s->process_count = 0;
		return add_all(s, c, s->state == READ_DELTA);
	}
	if (!s->process_count)
		return -ENODATA;
	if (s->process_count == 1 && !choice->one_column)
		return add_series(s, c, process);
	err = add_processes(s, c, choice->one_column);
	for (size_t p = c->first; p < c->end; p++)
		s->left += c->sessions.processes[p].count;
	s->left -= s->count < s->left ? s->count : s->left;
	if (err || choice->one_column || choice->no_growth || s->state == READ_PEAK || !c->is_heap)
		return err;
	return add_growth(s, c);
}

int selection_make(struct selection *s, const struct origin *const *origins, size_t count,
    const struct selection_choice *choice)
{
	struct candidates c = {.first = 0};
	int err;

	memset(s, 0, sizeof(*s));
	err = candidates_find(&c, s, origins, count);
	if (!err)
		err = sessions_choose(&c, s, choice->session);
	if (!err)
		err = choose(s, &c, choice);
	sessions_fini(&c.sessions);
	return err;
}

void selection_fini(struct selection *s)
{
	free(s->pairs);
	memset(s, 0, sizeof(*s));
}

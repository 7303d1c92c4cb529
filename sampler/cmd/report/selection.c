/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/selection.h"

#include "pprof/analysis/trend.h"
#include "pprof/table/array.h"
#include "sampler/cmd/report/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The files of one kind, grouped. */
struct candidates {
	const struct origin **origins;
	size_t *files; /* their numbers among all that were given */
	struct sessions sessions;
	size_t first, end; /* processes of the sessions that count */
	size_t capacity;   /* of the selection's pairs */
};

/* "" for the heap. A profile of another tool is told by what its period counts. */
static const char *kind_of(const struct origin *o)
{
	if (o->ours || strcmp(o->period_type, "space") == 0)
		return o->event;
	return o->period_type;
}

/* The heap profiles if there are any, otherwise the profiles of the first one's kind. */
static int candidates_find(
    struct candidates *c, struct selection *s, const struct origin *const *origins, size_t count)
{
	const char *kind = count ? kind_of(origins[0]) : "";
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		if (!*kind_of(origins[i]))
			kind = "";
	c->origins = calloc(count + 1, sizeof(*c->origins));
	c->files = calloc(count + 1, sizeof(*c->files));
	if (!c->origins || !c->files)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(kind_of(origins[i]), kind) != 0)
			continue;
		c->origins[found] = origins[i];
		c->files[found++] = i;
	}
	s->events_left = count - found;
	return sessions_make(&c->sessions, c->origins, found);
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
	s->pairs[s->count++] =
	    (struct selection_pair){.file = c->files[file], .column = column, .process = process};
	return 0;
}

static bool is_state(const struct candidates *c, size_t file)
{
	return !sessions_is_peak(&c->sessions, file) && !sessions_is_delta(&c->sessions, file);
}

/* Adds every delta, or every file. */
static int add_all(struct selection *s, struct candidates *c, bool deltas)
{
	const struct sessions *g = &c->sessions;
	int err = 0;

	for (size_t p = c->first; p < c->end; p++) {
		const size_t before = s->count;

		for (size_t i = 0; i < sessions_files(&g->processes[p]) && !err; i++) {
			const size_t file = sessions_file(g, &g->processes[p], i);

			if (!deltas || sessions_is_delta(g, file))
				err = pair_add(s, c, file, 0, p);
		}
		s->process_count += s->count > before;
	}
	return err ? err : s->count ? 0 : -ENODATA;
}

/* Adds the states of the only process. */
static int add_series(struct selection *s, struct candidates *c, size_t process)
{
	const struct sessions_process *p = &c->sessions.processes[process];
	bool has_end = false;
	int err = 0;

	for (size_t i = 0; i < sessions_files(p) && !err; i++) {
		const size_t file = sessions_file(&c->sessions, p, i);

		if (!is_state(c, file))
			continue;
		has_end = origin_is_last(c->origins[file]);
		err = pair_add(s, c, file, s->count, process);
	}
	s->series_count = s->count ? s->count : 1;
	s->growth_count = s->count - has_end;
	s->has_peak = p->peak != SESSIONS_NONE;
	if (!err && s->has_peak)
		err = pair_add(s, c, (size_t)p->peak, s->count, process);
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

/* Their states while they ran. */
struct running {
	struct moments_process *processes;
	size_t *numbers; /* of these processes, among all */
	size_t *files;
	int64_t *times_ns;
	size_t process_count, file_count;
};

/* When the process ended; 0: nobody has seen its end. */
static int64_t end_of(const struct candidates *c, size_t process)
{
	const long newest = c->sessions.processes[process].newest;

	return newest != SESSIONS_NONE && origin_is_last(c->origins[newest]) ? c->origins[newest]->time_ns
	                                                                     : 0;
}

static void list_running(struct running *r, const struct candidates *c)
{
	for (size_t p = c->first; p < c->end; p++) {
		const struct sessions_process *process = &c->sessions.processes[p];
		const size_t first = r->file_count;

		for (size_t i = 0; i < process->heap_count; i++) {
			const size_t file = sessions_file(&c->sessions, process, i);

			if (!is_state(c, file) || origin_is_last(c->origins[file]))
				continue;
			r->files[r->file_count] = file;
			r->times_ns[r->file_count++] = c->origins[file]->time_ns;
		}
		if (r->file_count == first)
			continue;
		r->numbers[r->process_count] = p;
		r->processes[r->process_count++] = (struct moments_process){.start_ns = process->start_ns,
		    .times_ns = r->times_ns + first,
		    .count = r->file_count - first,
		    .end_ns = end_of(c, p)};
	}
}

/* Adds one process at one moment. What an ended process has allocated is in its last profile. */
static int add_moment(
    struct selection *s, struct candidates *c, const struct running *r, size_t number, size_t moment)
{
	const struct moments_process *process = &r->processes[number];
	const struct moments_state state = moments_state_at(process, s->growth_times_ns[moment]);
	const size_t first = (size_t)(process->times_ns - r->times_ns), p = r->numbers[number];
	size_t file = r->files[first + state.index];

	if (!state.begun)
		return 0;
	if (state.over)
		file = process->end_ns ? (size_t)c->sessions.processes[p].newest
		                       : r->files[first + process->count - 1];
	if (pair_add(s, c, file, s->column_count + moment, p))
		return -ENOMEM;
	s->pairs[s->count - 1].is_added_up = true;
	s->pairs[s->count - 1].ended = state.over;
	return 0;
}

static int add_moments(struct selection *s, struct candidates *c, const struct running *r)
{
	const int moments = moments_choose(s->growth_times_ns, MOMENTS_MOST, r->processes, r->process_count);
	int err = moments < 0 ? moments : 0;

	if (moments >= 0)
		s->growth_count = (size_t)moments;
	if (moments < TREND_POINTS_LEAST)
		return err;
	for (size_t moment = 0; moment < s->growth_count; moment++)
		for (size_t i = 0; i < r->process_count && !err; i++)
			err = add_moment(s, c, r, i, moment);
	s->growth_first = s->column_count;
	s->column_count += s->growth_count;
	return err;
}

static int add_growth(struct selection *s, struct candidates *c)
{
	const size_t processes = c->sessions.process_count + 1, files = c->sessions.file_count + 1;
	struct running r = {
	    .processes = calloc(processes, sizeof(*r.processes)),
	    .numbers = calloc(processes, sizeof(*r.numbers)),
	    .files = calloc(files, sizeof(*r.files)),
	    .times_ns = calloc(files, sizeof(*r.times_ns)),
	};
	int err = -ENOMEM;

	if (r.processes && r.numbers && r.files && r.times_ns) {
		list_running(&r, c);
		err = add_moments(s, c, &r);
	}
	free(r.processes);
	free(r.numbers);
	free(r.files);
	free(r.times_ns);
	return err;
}

static int choose(struct selection *s, struct candidates *c, const struct selection_choice *choice)
{
	size_t process = c->first;

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
	const int err = add_processes(s, c, choice->one_column);
	if (err || choice->one_column || choice->no_growth || s->state == READ_PEAK)
		return err;
	return add_growth(s, c);
}

/* Counts the files of the sessions that count which are in no column. */
static int count_left(struct selection *s, const struct candidates *c, size_t count)
{
	const struct sessions *g = &c->sessions;
	bool *counts = calloc(count + 1, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		counts[s->pairs[i].file] |= !s->pairs[i].is_added_up;
	for (size_t p = c->first; p < c->end; p++) {
		for (size_t i = 0; i < sessions_files(&g->processes[p]); i++) {
			const size_t file = sessions_file(g, &g->processes[p], i);
			const bool left = !counts[c->files[file]], delta = sessions_is_delta(g, file);

			s->deltas_left += left && delta;
			s->states_left += left && !delta;
		}
	}
	free(counts);
	return 0;
}

int selection_make(struct selection *s, const struct origin *const *origins, size_t count,
    const struct selection_choice *choice)
{
	struct candidates c = {0};
	int err;

	memset(s, 0, sizeof(*s));
	err = candidates_find(&c, s, origins, count);
	if (!err)
		err = sessions_choose(&c, s, choice->session);
	if (!err)
		err = choose(s, &c, choice);
	if (!err)
		err = count_left(s, &c, count);
	sessions_fini(&c.sessions);
	free(c.origins);
	free(c.files);
	return err;
}

void selection_fini(struct selection *s)
{
	free(s->pairs);
	memset(s, 0, sizeof(*s));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/selection.h"

#include "pprof/analysis/trend.h"
#include "pprof/table/array.h"
#include "sampler/report/sessions.h"

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

/* "" for the heap: what is not ours is told by what its period counts. */
static const char *kind_of(const struct origin *o)
{
	if (o->ours || strcmp(o->period_type, "space") == 0)
		return o->event;
	return o->period_type;
}

/* Those of the heap if there are any, otherwise those of the kind of the first. */
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

static int pair_add(struct selection *s, struct candidates *c, long file, size_t column, size_t process)
{
	if (array_reserve(&s->pairs, &c->capacity, s->count + 1, sizeof(*s->pairs)))
		return -ENOMEM;
	s->pairs[s->count++] =
	    (struct selection_pair){.file = c->files[file], .column = column, .process = process};
	return 0;
}

static bool has_state(const struct candidates *c)
{
	for (size_t p = c->first; p < c->end; p++)
		if (sessions_newest(&c->sessions, p) != SESSIONS_NONE)
			return true;
	return false;
}

/* Every delta, or every file. */
static int add_all(struct selection *s, struct candidates *c, bool deltas)
{
	const struct sessions *g = &c->sessions;
	int err = 0;

	for (size_t p = c->first; p < c->end; p++) {
		size_t before = s->count;

		for (size_t i = 0; i < g->processes[p].count && !err; i++) {
			size_t file = g->order[g->processes[p].first + i];

			if (!deltas || sessions_is_delta(g, file))
				err = pair_add(s, c, (long)file, 0, p);
		}
		s->process_count += s->count > before;
	}
	return err ? err : s->count ? 0 : -ENODATA;
}

/* The states of the only process. */
static int add_series(struct selection *s, struct candidates *c, size_t process)
{
	const struct sessions *g = &c->sessions;
	const struct sessions_process *p = &g->processes[process];
	long peak = sessions_peak(g, process);
	bool has_end = false;
	int err = 0;

	for (size_t i = 0; i < p->count && !err; i++) {
		size_t file = g->order[p->first + i];

		if (sessions_is_peak(g, file) || sessions_is_delta(g, file))
			continue;
		has_end = origin_is_last(c->origins[file]);
		err = pair_add(s, c, (long)file, s->count, process);
	}
	s->series_count = s->count ? s->count : 1;
	s->growth_count = s->count - has_end;
	if (!err && peak != SESSIONS_NONE)
		err = pair_add(s, c, peak, s->count, process);
	s->has_peak = peak != SESSIONS_NONE;
	s->column_count = s->count;
	s->now = s->state == READ_PEAK && s->has_peak ? s->count - 1 : s->series_count - 1;
	return err;
}

static int add_processes(struct selection *s, struct candidates *c, bool one_column)
{
	const struct sessions *g = &c->sessions;
	bool peaks = false, newest = !one_column || s->state != READ_PEAK;
	int err = 0;

	for (size_t p = c->first; p < c->end; p++)
		peaks = peaks || sessions_peak(g, p) != SESSIONS_NONE;
	peaks = s->state == READ_PEAK || (peaks && !one_column);
	s->column_count = newest && peaks ? 2 : 1;
	s->now = s->state == READ_PEAK ? s->column_count - 1 : 0;
	for (size_t p = c->first; p < c->end && !err; p++) {
		long state = sessions_newest(g, p), peak = sessions_peak(g, p);

		if (state == SESSIONS_NONE)
			continue;
		if (newest)
			err = pair_add(s, c, state, 0, p);
		if (!err && peaks)
			err = pair_add(s, c, peak == SESSIONS_NONE ? state : peak, s->column_count - 1, p);
		s->peaks_missing += peaks && peak == SESSIONS_NONE;
	}
	s->has_peak = peaks;
	return err;
}

/* ---- several processes added up, moment by moment */

/* The states of a process while it ran. Returns how many. */
static size_t list_states(const struct candidates *c, size_t process, long *files, int64_t *times_ns)
{
	const struct sessions *g = &c->sessions;
	const struct sessions_process *p = &g->processes[process];
	size_t count = 0;

	for (size_t i = 0; i < p->heap_count; i++) {
		const size_t file = g->order[p->first + i];

		if (sessions_is_peak(g, file) || sessions_is_delta(g, file) ||
		    origin_is_last(c->origins[file]))
			continue;
		files[count] = (long)file;
		times_ns[count++] = c->origins[file]->time_ns;
	}
	return count;
}

struct added_up {
	struct moments_process *processes;
	size_t *numbers; /* of these processes, among all */
	long *files, *ends;
	int64_t *times_ns;
	size_t count;
};

static void list_processes(struct added_up *sum, const struct candidates *c)
{
	const struct sessions *g = &c->sessions;
	size_t at = 0;

	for (size_t p = c->first; p < c->end; p++) {
		const size_t count = list_states(c, p, sum->files + at, sum->times_ns + at);
		const long newest = sessions_newest(g, p);
		const bool ended = newest != SESSIONS_NONE && origin_is_last(c->origins[newest]);

		if (!count)
			continue;
		/* What an ended process has allocated is in its last profile, whatever that is. */
		sum->ends[sum->count] = ended ? newest : sum->files[at + count - 1];
		sum->numbers[sum->count] = p;
		sum->processes[sum->count++] = (struct moments_process){.start_ns = g->processes[p].start_ns,
		    .times_ns = sum->times_ns + at,
		    .count = count,
		    .end_ns = ended ? c->origins[newest]->time_ns : 0};
		at += count;
	}
}

static int add_moments(struct selection *s, struct candidates *c, const struct added_up *sum)
{
	const int moments = moments_choose(s->growth_times_ns, MOMENTS_MOST, sum->processes, sum->count);
	int err = moments < 0 ? moments : 0;

	if (moments >= 0)
		s->growth_count = (size_t)moments;
	if (moments < TREND_POINTS_LEAST)
		return err;
	for (int m = 0; m < moments && !err; m++) {
		for (size_t i = 0; i < sum->count && !err; i++) {
			const struct moments_state state =
			    moments_state_at(&sum->processes[i], s->growth_times_ns[m]);
			const size_t first = (size_t)(sum->processes[i].times_ns - sum->times_ns);

			if (!state.begun)
				continue;
			err = pair_add(s, c, state.over ? sum->ends[i] : sum->files[first + state.index],
			    s->column_count + (size_t)m, sum->numbers[i]);
			if (err)
				break;
			s->pairs[s->count - 1].is_added_up = true;
			s->pairs[s->count - 1].ended = state.over;
		}
	}
	if (!err) {
		s->growth_first = s->column_count;
		s->column_count += s->growth_count;
	}
	return err;
}

static int add_growth(struct selection *s, struct candidates *c)
{
	const size_t processes = c->sessions.process_count + 1, files = c->sessions.file_count + 1;
	struct added_up sum = {
	    .processes = calloc(processes, sizeof(*sum.processes)),
	    .numbers = calloc(processes, sizeof(*sum.numbers)),
	    .ends = calloc(processes, sizeof(*sum.ends)),
	    .files = calloc(files, sizeof(*sum.files)),
	    .times_ns = calloc(files, sizeof(*sum.times_ns)),
	};
	int err = -ENOMEM;

	if (sum.processes && sum.numbers && sum.ends && sum.files && sum.times_ns) {
		list_processes(&sum, c);
		err = add_moments(s, c, &sum);
	}
	free(sum.processes);
	free(sum.numbers);
	free(sum.ends);
	free(sum.files);
	free(sum.times_ns);
	return err;
}

static int choose(struct selection *s, struct candidates *c, const struct selection_choice *choice)
{
	size_t process = c->first, with_state = 0;

	s->state = choice->state;
	s->column_count = s->series_count = 1;
	if (s->state == READ_NEWEST && !has_state(c))
		s->state = READ_DELTA;
	if (s->state == READ_DELTA || s->state == READ_ALL)
		return add_all(s, c, s->state == READ_DELTA);
	for (size_t p = c->first; p < c->end; p++) {
		if (sessions_newest(&c->sessions, p) == SESSIONS_NONE)
			continue;
		process = p;
		with_state++;
	}
	if (!with_state)
		return -ENODATA;
	s->process_count = with_state;
	if (with_state == 1 && !choice->one_column)
		return add_series(s, c, process);
	int err = add_processes(s, c, choice->one_column);

	return err || choice->one_column || choice->no_growth || s->state == READ_PEAK ? err
	                                                                               : add_growth(s, c);
}

/* What of the sessions that count is in no column. */
static int count_left(struct selection *s, const struct candidates *c, size_t count)
{
	const struct sessions *g = &c->sessions;
	bool *counts = calloc(count + 1, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		counts[s->pairs[i].file] |= !s->pairs[i].is_added_up;
	for (size_t p = c->first; p < c->end; p++) {
		for (size_t i = 0; i < g->processes[p].count; i++) {
			size_t file = g->order[g->processes[p].first + i];
			bool left = !counts[c->files[file]], delta = sessions_is_delta(g, file);

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

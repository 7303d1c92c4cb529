/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/selection.h"

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
	s->pairs[s->count++] = (struct selection_pair){c->files[file], column, process};
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
	int err = 0;

	for (size_t i = 0; i < p->count && !err; i++) {
		size_t file = g->order[p->first + i];

		if (!sessions_is_peak(g, file) && !sessions_is_delta(g, file))
			err = pair_add(s, c, (long)file, s->count, process);
	}
	s->series_count = s->count ? s->count : 1;
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
	return add_processes(s, c, choice->one_column);
}

/* What of the sessions that count is in no column. */
static int count_left(struct selection *s, const struct candidates *c, size_t count)
{
	const struct sessions *g = &c->sessions;
	bool *counts = calloc(count + 1, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		counts[s->pairs[i].file] = true;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Which profiles belong together, from their origins alone: sessions, processes, states; and what of
 * them counts. */
#include "sampler/cmd/report/selection.h"
#include "sampler/cmd/report/process_set.h"
#include "sampler/cmd/report/sessions.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FILES_MAX = 32, SECOND = 1000000000 };

static struct origin origins[FILES_MAX];
static const struct origin *pointers[FILES_MAX];
static size_t count;

/* A profile of `pid` in the session that began at a second (0: in none), written at a second. */
static size_t add(int session, int pid, int start, const char *cause, int time)
{
	struct origin *o = &origins[count];

	*o = (struct origin){.pid = pid,
	    .ours = true,
	    .time_ns = (int64_t)time * SECOND,
	    .period = 4096,
	    .period_type = "space",
	    .period_unit = "bytes",
	    .host = "box"};
	strcpy(o->program, "nginx");
	snprintf(o->cause, sizeof(o->cause), "%s", cause);
	snprintf(o->samples, sizeof(o->samples), "%d taken, 1 lost stacks, %s", pid,
	    strncmp(cause, "delta", 5) == 0 ? ORIGIN_OF_INTERVAL : "copied by the hook 3");
	if (session) {
		snprintf(o->session, sizeof(o->session), "%d000000000-1", session);
		o->session_ns = (int64_t)session * SECOND;
		o->start_ns = (int64_t)start * SECOND;
	}
	o->kind = strncmp(cause, "peak", 4) == 0 ? ORIGIN_PEAK
	    : strncmp(cause, "delta", 5) == 0    ? ORIGIN_DELTA
	                                         : ORIGIN_LIVE;
	pointers[count] = o;
	return count++;
}

/* Two snapshots, a delta, the peak and the end, in the order of a glob: files first to first + 4. */
static size_t add_process(int session, int pid, int start)
{
	size_t first = add(session, pid, start, "delta, what was allocated", start + 1);

	add(session, pid, start, "0001, every 1 s", start + 1);
	add(session, pid, start, "0002, every 1 s", start + 2);
	add(session, pid, start, "exit, the process exited with status 0", start + 3);
	add(session, pid, start, "peak, inuse_* is the heap at its largest", start + 2);
	return first;
}

static int clear(void **state)
{
	count = 0;
	return 0;
}

static struct selection selected(enum read_state state, int32_t session, bool one_column, int wanted)
{
	const struct selection_choice choice = {state, session, one_column, false};
	struct selection s;

	assert_int_equal(selection_make(&s, pointers, count, &choice), wanted);
	return s;
}

static bool has(const struct selection *s, size_t file, size_t column)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->pairs[i].file == file && s->pairs[i].column == column)
			return true;
	return false;
}

static void states_of_one_process_are_a_series(void **unused)
{
	size_t first = add_process(100, 7, 101);
	struct selection s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);

	assert_int_equal(s.series_count, 3);
	assert_int_equal(s.column_count, 4);
	assert_true(has(&s, first + 1, 0) && has(&s, first + 2, 1) && has(&s, first + 3, 2));
	assert_true(has(&s, first + 4, 3) && s.has_peak);
	assert_int_equal(s.now, 2);
	selection_fini(&s);
	s = selected(READ_PEAK, SESSION_DEFAULT, false, 0);
	assert_int_equal(s.now, 3);
	selection_fini(&s);
	s = selected(READ_NEWEST, SESSION_DEFAULT, true, 0);
	assert_true(s.count == 1 && has(&s, first + 3, 0) && s.left == 4);
	selection_fini(&s);
}

/* The end is no point of growth, and neither is a snapshot of the teardown just before the end. */
static void growth_is_of_the_process_while_it_ran_on(void **unused)
{
	size_t first = add_process(100, 7, 101);
	struct selection s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);

	assert_true(s.series_count == 3 && s.growth_count == 2);
	selection_fini(&s);
	origins[first + 3].time_ns = origins[first + 2].time_ns + SECOND / 10;
	s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);
	assert_true(s.series_count == 3 && s.growth_count == 1);
	selection_fini(&s);
}

static void processes_add_up_in_their_newest_state(void **unused)
{
	size_t one = add_process(100, 7, 101), two = add_process(100, 8, 102);
	size_t running = add(100, 9, 103, "0001, every 1 s", 104);
	struct selection s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);

	assert_int_equal(s.process_count, 3);
	assert_int_equal(s.column_count, 2);
	assert_true(has(&s, one + 3, 0) && has(&s, two + 3, 0) && has(&s, running, 0));
	assert_true(has(&s, one + 4, 1) && has(&s, two + 4, 1) && has(&s, running, 1));
	assert_int_equal(s.count, 6);
	assert_int_equal(s.peaks_missing, 1);
	selection_fini(&s);
	s = selected(READ_PEAK, SESSION_DEFAULT, false, 0);
	assert_int_equal(s.now, 1);
	selection_fini(&s);
	s = selected(READ_PEAK, SESSION_DEFAULT, true, 0);
	assert_true(s.count == 3 && s.now == 0 && has(&s, one + 4, 0) && has(&s, running, 0));
	selection_fini(&s);
	s = selected(READ_ALL, SESSION_DEFAULT, false, 0);
	assert_true(s.count == 11 && s.process_count == 3 && s.column_count == 1);
	selection_fini(&s);
}

static void deltas_count_when_asked_for_or_alone(void **unused)
{
	size_t first = add_process(100, 7, 101), other = add_process(100, 8, 101);
	struct selection s = selected(READ_DELTA, SESSION_DEFAULT, false, 0);

	assert_true(s.count == 2 && has(&s, first, 0) && has(&s, other, 0));
	selection_fini(&s);
	clear(NULL);
	add(100, 7, 101, "delta, what was allocated", 102);
	add(100, 7, 101, "delta, what was allocated", 103);
	s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);
	assert_true(s.count == 2 && s.process_count == 1 && s.state == READ_DELTA);
	selection_fini(&s);
	clear(NULL);
	add(100, 7, 101, "0001, every 1 s", 102);
	s = selected(READ_DELTA, SESSION_DEFAULT, false, -ENODATA);
	selection_fini(&s);
}

static void the_newest_session_counts(void **unused)
{
	size_t old = add_process(100, 7, 101), new = add_process(200, 7, 201);
	struct selection s = selected(READ_NEWEST, SESSION_DEFAULT, true, 0);

	assert_true(s.count == 1 && has(&s, new + 3, 0));
	assert_true(s.session == 1 && s.session_count == 2);
	selection_fini(&s);
	s = selected(READ_NEWEST, 2, true, 0);
	assert_true(s.count == 1 && has(&s, old + 3, 0));
	selection_fini(&s);
	s = selected(READ_NEWEST, SESSION_ALL, true, 0);
	assert_true(s.count == 2 && s.process_count == 2 && s.session == 0);
	selection_fini(&s);
	s = selected(READ_NEWEST, 3, true, -ERANGE);
	selection_fini(&s);
}

/* A pid that executes another program, or is used again, is another process; the clock may go back
 * before the exit. */
static void a_process_is_a_pid_and_its_start(void **unused)
{
	size_t exit_file, shell = add(100, 7, 101, "exit, the process executed another program", 102);
	struct selection s;

	add(100, 7, 103, "0001, every 1 s", 110);
	exit_file = add(100, 7, 103, "exit, the process exited with status 0", 105);
	s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);
	assert_int_equal(s.process_count, 2);
	assert_true(has(&s, shell, 0) && has(&s, exit_file, 0) && s.count == 2);
	selection_fini(&s);
}

static void without_a_session_each_profile_counts(void **unused)
{
	size_t named, first = add(0, 7, 0, "0001, every 1 s", 10);
	size_t second = add(0, 7, 0, "exit, the process exited with status 0", 20);
	struct selection s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);

	assert_true(s.count == 2 && s.process_count == 2 && s.session_count == 1 && s.column_count == 1);
	assert_true(has(&s, first, 0) && has(&s, second, 0) && s.pairs[0].process != s.pairs[1].process);
	selection_fini(&s);
	/* Beside a session they are the oldest. */
	named = add(5, 7, 5, "0001, every 1 s", 6);
	s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);
	assert_true(s.session == 1 && s.session_count == 2 && s.count == 1 && has(&s, named, 0));
	selection_fini(&s);
	s = selected(READ_NEWEST, 2, false, 0);
	assert_true(s.count == 2 && has(&s, first, 0) && has(&s, second, 0));
	selection_fini(&s);
}

static void what_is_not_of_one_process_counts_for_itself(void **unused)
{
	size_t merged = add(100, 7, 101, "exit, the process exited with status 0", 105), foreign;
	struct selection s;

	strcpy(origins[merged].merged, "2 profiles of 2 processes: nginx (2)");
	origins[add(100, 7, 101, "exit, the process exited with status 0", 105)].merged[0] = 'x';
	foreign = add(100, 0, 101, "", 106);
	origins[foreign].ours = false;
	origins[foreign].kind = ORIGIN_DELTA; /* it has a duration */
	s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.process_count, 3);
	selection_fini(&s);
}

/* Whatever a hostile profile calls itself, it is in a column. */
static void a_profile_alone_always_counts(void **unused)
{
	static const enum read_state states[] = {READ_NEWEST, READ_PEAK, READ_ALL};
	static const char *const causes[] = {"", "peak, of nobody", "delta, of nobody", "exit, of nobody"};

	for (size_t i = 0; i < 4 * 2 * 2 * 3; i++) {
		struct selection s;

		clear(NULL);
		add((int)(i / 4 % 2), 0, 0, causes[i % 4], 5);
		origins[0].merged[0] = i / 8 % 2 ? 'x' : '\0';
		s = selected(states[i / 16], SESSION_DEFAULT, false, 0);
		assert_true(s.count == 1 && s.column_count == 1 && s.now == 0 && has(&s, 0, 0));
		selection_fini(&s);
	}
}

static void events_are_not_added_to_the_heap(void **unused)
{
	size_t event = add(100, 7, 102, "exit, the process exited with status 0", 106), heap;
	struct sessions g;
	struct selection s;

	strcpy(origins[event].event, "cpu-clock");
	strcpy(origins[event].period_type, "cpu");
	s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);
	assert_true(s.count == 1 && has(&s, event, 0));
	selection_fini(&s);
	heap = add(100, 7, 101, "exit, the process exited with status 0", 106);
	s = selected(READ_NEWEST, SESSION_DEFAULT, false, 0);
	assert_true(s.count == 1 && has(&s, heap, 0) && s.events_left == 1);
	selection_fini(&s);
	/* They are of one process, though their starts are not the same. */
	assert_int_equal(sessions_make(&g, pointers, count, NULL), 0);
	assert_int_equal(g.process_count, 1);
	assert_int_equal(g.processes[0].newest, heap);
	assert_int_equal(g.processes[0].count, 2);
	sessions_fini(&g);
	/* Under another program they are not. */
	strcpy(origins[event].program, "sh");
	assert_int_equal(sessions_make(&g, pointers, count, NULL), 0);
	assert_int_equal(g.process_count, 2);
	sessions_fini(&g);
}

/* A shell whose process executes another program, and that program: each has its own events. */
static void events_are_of_the_program_that_was_executed(void **unused)
{
	static const char *const programs[] = {"sh", "leaky"};
	static const int starts[] = {101, 102, 111, 105}; /* the last is nearer to the first's heap */
	struct sessions g;

	for (int i = 0; i < 4; i++) {
		size_t file = add(100, 7, starts[i], "exit, of it", 105 + 10 * (i / 2));

		strcpy(origins[file].program, programs[i / 2]);
		if (i % 2)
			strcpy(origins[file].event, "cpu-clock");
	}
	assert_int_equal(sessions_make(&g, pointers, count, NULL), 0);
	assert_int_equal(g.process_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(g.processes[i].count, 2);
		assert_int_equal(g.processes[i].state_count, 1);
		assert_int_equal(g.processes[i].newest, 2 * i);
	}
	sessions_fini(&g);
}

/* The last events of a shell, written when its process executes another program already, under its name. */
static void events_of_one_process_may_have_two_names(void **state)
{
	size_t last, next;
	struct selection s;

	for (int i = 0; i < 4; i++) {
		size_t file =
		    add(100, 7, i < 3 ? 101 : 200, i < 2 ? "0001, every 1 s" : "exit, of it", 110 + i);

		strcpy(origins[file].event, "cpu-clock");
		strcpy(origins[file].period_type, "cpu");
		strcpy(origins[file].program, i < 1 ? "bash" : "sleep");
	}
	last = 2;
	next = 3;
	s = selected(READ_NEWEST, SESSION_DEFAULT, true, 0);
	assert_true(s.process_count == 2 && s.count == 2 && has(&s, last, 0) && has(&s, next, 0));
	selection_fini(&s);
}

static void nothing_is_no_session(void **unused)
{
	struct sessions g;
	struct selection s = selected(READ_NEWEST, SESSION_DEFAULT, false, -ENODATA);

	selection_fini(&s);
	assert_int_equal(sessions_make(&g, pointers, 0, NULL), 0);
	assert_int_equal(g.session_count, 0);
	sessions_fini(&g);
}

static void a_crowd_is_counted_by_program(void **unused)
{
	struct process_set set;
	char text[512];

	add_process(100, 7, 101);
	for (size_t i = 0; i < 3; i++)
		strcpy(origins[i].program, "sh");
	assert_int_equal(process_set_make(&set, pointers, count, 5), 0);
	assert_string_equal(process_set_describe(&set, text, sizeof(text)), "5 processes: sh (3), nginx (2)");
	assert_string_equal(set.samples, "35 taken, 5 lost stacks");
	assert_int_equal(set.ended, 1);
	for (size_t i = 0; i < 5; i++)
		snprintf(origins[i].program, sizeof(origins[i].program), "%c", (int)('e' - i));
	/* States of one process count the same samples. */
	assert_int_equal(process_set_make(&set, pointers, count, 4), 0);
	assert_string_equal(set.samples, "");
	/* Deltas do not. */
	for (size_t i = 0; i < 5; i++)
		origins[i].kind = ORIGIN_DELTA;
	for (size_t i = 0; i < 5; i++)
		snprintf(origins[i].samples, sizeof(origins[i].samples), "%zu taken, 0 lost stacks, %s", i,
		    ORIGIN_OF_INTERVAL);
	assert_int_equal(process_set_make(&set, pointers, count, 1), 0);
	assert_string_equal(set.samples, "10 taken, 0 lost stacks");
	strcpy(origins[1].samples, "7 taken, 1 lost stacks, " ORIGIN_LOST_INHERITED " 3, by uprobe 4");
	origins[1].kind = ORIGIN_LIVE;
	assert_int_equal(process_set_make(&set, pointers, count, 5), 0);
	assert_string_equal(set.samples, "16 taken, 1 lost stacks, " ORIGIN_LOST_INHERITED " 3");
	/* Of one profile they are as it says. */
	assert_int_equal(process_set_make(&set, pointers + 1, 1, 1), 0);
	assert_string_equal(set.samples, origins[1].samples);
	origins[2].samples[0] = '\0';
	origins[3].period = 1;
	assert_int_equal(process_set_make(&set, pointers, count, 5), 0);
	assert_string_equal(set.programs, "a, b, c, d and 1 more program");
	assert_string_equal(set.samples, "");
	assert_true(set.period_least == 1 && set.period_most == 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(states_of_one_process_are_a_series, clear),
	    cmocka_unit_test_setup(growth_is_of_the_process_while_it_ran_on, clear),
	    cmocka_unit_test_setup(processes_add_up_in_their_newest_state, clear),
	    cmocka_unit_test_setup(deltas_count_when_asked_for_or_alone, clear),
	    cmocka_unit_test_setup(the_newest_session_counts, clear),
	    cmocka_unit_test_setup(a_process_is_a_pid_and_its_start, clear),
	    cmocka_unit_test_setup(without_a_session_each_profile_counts, clear),
	    cmocka_unit_test_setup(what_is_not_of_one_process_counts_for_itself, clear),
	    cmocka_unit_test_setup(a_profile_alone_always_counts, clear),
	    cmocka_unit_test_setup(events_are_not_added_to_the_heap, clear),
	    cmocka_unit_test_setup(events_are_of_the_program_that_was_executed, clear),
	    cmocka_unit_test_setup(events_of_one_process_may_have_two_names, clear),
	    cmocka_unit_test_setup(nothing_is_no_session, clear),
	    cmocka_unit_test_setup(a_crowd_is_counted_by_program, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the comments of a profile say of where it comes from, and whether two are of one process. */
#include "pprof/model/origin.h"

#include "pprof/model/profile.h"
#include "pprof/text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* An origin from comments, the last NULL. */
static struct origin origin_of(const char *const *comments)
{
	struct profile *p = profile_new();
	struct origin origin;

	for (; *comments; comments++)
		profile_add_comment(p, *comments);
	profile_set_time(p, 1000, 500);
	origin_read(&origin, p);
	profile_free(p);
	return origin;
}

#define ORIGIN(...) origin_of((const char *const[]){__VA_ARGS__, NULL})
#define NGINX       "heaptap 0.1.0", "pid=7 comm=nginx host=box"
#define SESSION     "session=1700000000000000000-42 start=1700000001000000000"

static void a_session_is_read(void **state)
{
	struct origin o = ORIGIN(NGINX, SESSION, "snapshot: peak, inuse_* is the heap at its largest");

	assert_string_equal(o.session, "1700000000000000000-42");
	assert_int_equal(o.session_ns, 1700000000000000000);
	assert_int_equal(o.start_ns, 1700000001000000000);
	assert_true(origin_has_process(&o));
	o = ORIGIN(NGINX, "session=", "session=x start=", "session=12");
	assert_string_equal(o.session, "x");
	assert_int_equal(o.session_ns, 0);
	o = ORIGIN("another tool", SESSION, "pid=7 comm=nginx host=box");
	assert_true(!o.ours && !*o.session && !origin_has_process(&o));
}

/* Their difference always has room in 64 bits. */
static void times_that_no_recording_has_are_none(void **state)
{
	static const int64_t times_ns[] = {INT64_MIN, -1, INT64_MAX, INT64_MAX / 2};
	struct origin o = ORIGIN(NGINX, "session=-9223372036854775808-42 start=9223372036854775807");

	(void)state;
	assert_int_equal(o.session_ns, 0);
	assert_int_equal(o.start_ns, 0);
	for (size_t i = 0; i < sizeof(times_ns) / sizeof(*times_ns); i++) {
		struct profile *p = profile_new();

		profile_set_time(p, times_ns[i], 0);
		origin_read(&o, p);
		profile_free(p);
		assert_int_equal(o.time_ns, 0);
	}
}

/* What tells a process apart from others of its program; a sum, and older versions, have the program's. */
static void names(void **state)
{
	struct origin o = ORIGIN(NGINX, "name: nginx: worker process", SESSION);

	(void)state;
	assert_string_equal(o.program, "nginx");
	assert_string_equal(o.name, "nginx: worker process");
	o = ORIGIN(NGINX, SESSION);
	assert_string_equal(o.name, "nginx");
	o = ORIGIN(NGINX, "name: nginx: worker process", "pid=8 comm=sh host=box",
	    "merged: 2 profiles of 2 processes: nginx, sh");
	assert_string_equal(o.name, o.program);
	o = ORIGIN(NGINX, "name: nginx: worker process", "pid=8 comm=nginx host=box");
	assert_string_equal(o.name, "nginx");
	o = ORIGIN("another tool", "name: nginx: worker process");
	assert_string_equal(o.name, "");
}

static void assert_cut_between_characters(const char *text, size_t room)
{
	assert_in_range(strlen(text), room - 2, room - 1);
	assert_int_equal(utf8_valid_prefix(text, strlen(text)), strlen(text));
}

static void long_texts_are_cut_between_characters(void **state)
{
	char comments[7][2048], long_text[1601];
	struct origin o;

	for (size_t i = 0; i < 1600; i++)
		long_text[i] = i % 2 ? '\xa9' : '\xc3';
	long_text[1600] = '\0';
	for (int odd = 0; odd < 2; odd++) { /* one of the two would be cut in a character */
		static const char *const before[] = {"pid=7 comm=", "snapshot: ", "samples: ", "attached: ",
		    "not seen: ", "event: ", "name: "};

		for (size_t i = 0; i < 7; i++)
			snprintf(comments[i], sizeof(comments[i]), "%s%s%s%s", before[i], odd ? "x" : "",
			    long_text, i == 0 ? " host=box" : "");
		o = ORIGIN("heaptap 0.1.0", comments[0], comments[1], comments[2], comments[3], comments[4],
		    comments[5], comments[6]);
		assert_cut_between_characters(o.program, sizeof(o.program));
		assert_cut_between_characters(o.name, sizeof(o.name));
		assert_cut_between_characters(o.cause, sizeof(o.cause));
		assert_cut_between_characters(o.samples, sizeof(o.samples));
		assert_cut_between_characters(o.attached, sizeof(o.attached));
		assert_cut_between_characters(o.unseen, sizeof(o.unseen));
		assert_cut_between_characters(o.event, sizeof(o.event));
		assert_string_equal(o.host, "box");
	}
}

/* What is said of a period of 1 depends on it. */
/* Only the daemon gives labels; those of the rule stand first. */
static void the_daemons_are_told_by_their_labels(void **state)
{
	(void)state;
	assert_true(ORIGIN("heaptap 0.1.0", "labels: team=data service_name=redis host=box").is_daemons);
	assert_false(ORIGIN("heaptap 0.1.0", "snapshot: exit, status 0").is_daemons);
	assert_false(ORIGIN("labels: team=data").is_daemons);
}

static void what_was_not_recorded_is_known(void **state)
{
	struct origin o = ORIGIN(NGINX, SESSION, "snapshot: exit, status 0");

	assert_int_equal(o.gaps, 0);
	o = ORIGIN(NGINX, "attached: 3.1 s after the start; about 4.0 KiB of resident memory are older");
	assert_int_equal(o.gaps, ORIGIN_GAP_ATTACHED);
	o = ORIGIN(NGINX, "taken over: 3.1 s after the start");
	assert_int_equal(o.gaps, ORIGIN_GAP_TAKEN_OVER);
	assert_string_equal(o.taken_over, "3.1 s after the start");
	o = ORIGIN(NGINX, "2 snapshots were skipped; sampling was paused for 2.000 s and is now",
	    ORIGIN_LIMITED "1 processes, whose limit leaves no room");
	assert_int_equal(o.gaps, ORIGIN_GAP_PAUSED | ORIGIN_GAP_LIMITED);
}

static void an_event_goes_back_to_the_beginning(void **state)
{
	struct origin o =
	    ORIGIN(NGINX, SESSION, "snapshot: 0001, every 1 s", "event: cpu-clock, 99 a second; all");

	assert_string_equal(o.event, "cpu-clock");
	assert_int_equal(o.kind, ORIGIN_LIVE);
	o = ORIGIN(NGINX, SESSION, "snapshot: delta, what was allocated");
	assert_int_equal(o.kind, ORIGIN_DELTA);
}

static void one_process_is_a_session_a_pid_and_a_start(void **state)
{
	struct origin first = ORIGIN(NGINX, SESSION, "snapshot: 0001, every 1 s"), other;

	other = ORIGIN(NGINX, SESSION, "snapshot: exit, the process exited with status 0");
	assert_true(origin_same_process(&first, &other));
	other = ORIGIN("heaptap 0.1.0", "pid=8 comm=nginx host=box", SESSION);
	assert_false(origin_same_process(&first, &other));
	other = ORIGIN(NGINX, "session=1700000000000000000-42 start=1700000001000000001");
	assert_false(origin_same_process(&first, &other));
	other = ORIGIN(NGINX, "session=1800000000000000000-42 start=1700000001000000000");
	assert_false(origin_same_process(&first, &other));
	other = ORIGIN("heaptap 0.1.0", "pid=7 comm=nginx host=other", SESSION);
	assert_false(origin_same_process(&first, &other));
	other = ORIGIN(NGINX);
	assert_false(origin_has_process(&other));
	assert_false(origin_same_process(&other, &other));
}

static void a_sum_is_of_no_process(void **state)
{
	struct origin o =
	    ORIGIN(NGINX, "pid=8 comm=sh host=box", "merged: 2 profiles of 2 processes: nginx, sh");

	assert_string_equal(o.merged, "2 profiles of 2 processes: nginx, sh");
	assert_false(origin_has_process(&o));
	assert_false(origin_same_process(&o, &o));
	o = ORIGIN(NGINX, "pid=8 comm=sh host=box"); /* by another tool */
	assert_string_equal(o.merged, "2 processes");
	assert_false(origin_has_process(&o));
}

/* One of the numbers of the profiles in a sum is not the sum's. */
static void samples_of_a_sum(void **state)
{
	struct origin o = ORIGIN(NGINX, "samples: 5 taken, 1 lost stacks", "pid=8 comm=sh host=box",
	    "samples: 7 taken, 0 lost stacks",
	    "merged: 2 profiles of 2 processes: nginx, sh; samples: 12 taken, 1 lost stacks");

	(void)state;
	assert_string_equal(o.merged, "2 profiles of 2 processes: nginx, sh");
	assert_string_equal(o.samples, "12 taken, 1 lost stacks");
	o = ORIGIN(NGINX, "pid=8 comm=sh host=box", "samples: 7 taken, 0 lost stacks");
	assert_string_equal(o.samples, "");
	assert_int_equal(o.process_count, 2);
	o = ORIGIN(NGINX, "samples: 5 taken, 1 lost stacks", "samples: 7 taken, 0 lost stacks");
	assert_string_equal(o.samples, "");
	o = ORIGIN(NGINX, "samples: 5 taken, 1 lost stacks");
	assert_string_equal(o.samples, "5 taken, 1 lost stacks");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_session_is_read),
	    cmocka_unit_test(times_that_no_recording_has_are_none),
	    cmocka_unit_test(names),
	    cmocka_unit_test(long_texts_are_cut_between_characters),
	    cmocka_unit_test(the_daemons_are_told_by_their_labels),
	    cmocka_unit_test(what_was_not_recorded_is_known),
	    cmocka_unit_test(an_event_goes_back_to_the_beginning),
	    cmocka_unit_test(one_process_is_a_session_a_pid_and_a_start),
	    cmocka_unit_test(a_sum_is_of_no_process),
	    cmocka_unit_test(samples_of_a_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the front says at the start, and how long it waits for a sampler that says nothing. */
#include "sampler/cmd/record/front.h"
#include "sampler/cmd/record/start_lines.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the lines at the start */

static const char *line(const struct options *options, bool heap)
{
	static char text[2048];

	start_lines_describe(options, &(struct start){.command = 4711, .heap = heap}, text, sizeof(text));
	return text;
}

static void what_where_and_how(void **state)
{
	struct options options = {.record.heap.period_bytes = 512 << 10};

	(void)state;
	assert_string_equal(line(&options, true),
	    "recording pid 4711 (a sample per 512 KiB) to heaptap.*.pb.gz\n"
	    "a snapshot of it now: heaptap snapshot 4711");
	options.record.heap.period_bytes = 1;
	options.output = "out/";
	options.record.heap.paused = true;
	assert_string_equal(line(&options, true),
	    "recording pid 4711 (every allocation, from its heaptap_start() on) to out/heaptap.*.pb.gz\n"
	    "a snapshot of it now: heaptap snapshot 4711");
	options.record.heap.period_bytes = 1000;
	options.record.heap.paused = false;
	options.output = "x/%t-%p.%h/a%%.gz";
	options.record.event_texts[options.record.event_count++] = "cpu-clock@99";
	assert_string_equal(line(&options, true),
	    "recording pid 4711 (a sample per 1000 B, cpu-clock@99) to x/*-*/a%.gz\n"
	    "a snapshot of it now: heaptap snapshot 4711");
}

static void of_an_attached_process_how_to_detach(void **state)
{
	struct options options = {.record.heap.period_bytes = 512 << 10, .record.pid_count = 1};
	char wanted[256];

	(void)state;
	snprintf(wanted, sizeof(wanted),
	    "recording pid 4711 (a sample per 512 KiB) to heaptap.*.pb.gz\n"
	    "a snapshot of it now: heaptap snapshot 4711\n"
	    "to detach: Ctrl-C here, or kill %d",
	    (int)getpid());
	assert_string_equal(line(&options, true), wanted);
}

static void nobody_can_ask(void **state)
{
	const struct options options = {.record.heap.period_bytes = 512 << 10};
	const struct start start = {.command = 4711, .heap = true, .socket_error = -EACCES};
	char text[2048];

	(void)state;
	start_lines_describe(&options, &start, text, sizeof(text));
	assert_string_equal(text,
	    "recording pid 4711 (a sample per 512 KiB) to heaptap.*.pb.gz\n"
	    "no snapshot of it can be asked for, without a control socket: Permission denied");
}

static void events_alone(void **state)
{
	struct options options = {.record.heap.period_bytes = 512 << 10, .output = "x.gz"};

	(void)state;
	options.record.event_texts[options.record.event_count++] = "cpu-clock";
	options.record.event_texts[options.record.event_count++] = "page-faults/1";
	assert_string_equal(line(&options, false),
	    "recording pid 4711 (cpu-clock, page-faults/1) to x.gz\n"
	    "a snapshot of it now: heaptap snapshot 4711");
}

/* ---- the wait for the sampler */

#define SECOND_NS UINT64_C(1000000000)

static void it_is_told_more_and_more_rarely(void **state)
{
	const uint64_t begin_ns = 5 * SECOND_NS, told_at[] = {4, 8, 16, 32};
	struct front_timeout timeout = {0};
	size_t told = 0;

	(void)state;
	front_timeout_restart(&timeout, begin_ns);
	for (uint64_t s = 0; s < 60; s++)
		if (front_timeout_look(&timeout, begin_ns + s * SECOND_NS) == FRONT_TIMEOUT_TELL) {
			assert_true(told < sizeof(told_at) / sizeof(told_at[0]));
			assert_int_equal(s, told_at[told]);
			told++;
		}
	assert_int_equal(told, sizeof(told_at) / sizeof(told_at[0]));
	assert_int_equal(front_timeout_look(&timeout, begin_ns + 60 * SECOND_NS), FRONT_TIMEOUT_OVER);
}

static void who_says_something_is_waited_for(void **state)
{
	struct front_timeout timeout = {0};

	(void)state;
	for (uint64_t s = 1; s < 3600; s++) {
		front_timeout_restart(&timeout, s * SECOND_NS);
		assert_int_equal(front_timeout_look(&timeout, (s + 1) * SECOND_NS), FRONT_TIMEOUT_NOT_YET);
	}
	assert_int_equal(front_timeout_look(&timeout, 3601 * SECOND_NS), FRONT_TIMEOUT_NOT_YET);
	assert_int_equal(front_timeout_look(&timeout, 3603 * SECOND_NS), FRONT_TIMEOUT_TELL);
	front_timeout_restart(&timeout, 3604 * SECOND_NS);
	assert_int_equal(front_timeout_look(&timeout, 3606 * SECOND_NS), FRONT_TIMEOUT_NOT_YET);
	assert_int_equal(front_timeout_look(&timeout, 3607 * SECOND_NS), FRONT_TIMEOUT_NOT_YET);
	assert_int_equal(front_timeout_look(&timeout, 3608 * SECOND_NS), FRONT_TIMEOUT_TELL);
}

/* A container that is frozen, before the front looks for the first time or later. */
static void a_pause_of_the_front_is_no_silence(void **state)
{
	(void)state;
	for (uint64_t before = 0; before < 3; before++) {
		struct front_timeout timeout = {0};
		uint64_t now_ns = 5 * SECOND_NS;

		front_timeout_restart(&timeout, now_ns);
		for (uint64_t s = 0; s < before; s++)
			assert_int_equal(
			    front_timeout_look(&timeout, now_ns += SECOND_NS), FRONT_TIMEOUT_NOT_YET);
		for (int pauses = 0; pauses < 10; pauses++) {
			const enum front_timeout_state verdict =
			    front_timeout_look(&timeout, now_ns += 600 * SECOND_NS);

			assert_int_not_equal(verdict, FRONT_TIMEOUT_OVER);
			assert_true(
			    pauses || verdict == (before < 2 ? FRONT_TIMEOUT_NOT_YET : FRONT_TIMEOUT_TELL));
		}
		/* If the sampler does not say a word when all run again, it is given up as ever. */
		int seconds = 0;
		while (front_timeout_look(&timeout, now_ns += SECOND_NS) != FRONT_TIMEOUT_OVER)
			assert_true(++seconds < 60);
		assert_true(seconds >= 60 - 2 * 10 - 3);
	}
}

/* The last word may be that COMMAND's counters are attached, an hour ago, and nobody waited since. */
static void what_was_said_long_ago_is_no_silence(void **state)
{
	struct front_timeout timeout = {0};

	(void)state;
	front_timeout_restart(&timeout, 5 * SECOND_NS);
	assert_int_equal(front_timeout_look(&timeout, 3605 * SECOND_NS), FRONT_TIMEOUT_NOT_YET);
	assert_int_equal(front_timeout_look(&timeout, 3606 * SECOND_NS), FRONT_TIMEOUT_NOT_YET);
}

/* Signals to the front make it look more often. */
static void looks_between_change_nothing(void **state)
{
	const uint64_t begin_ns = 5 * SECOND_NS, step_ns = SECOND_NS / 100;
	struct front_timeout timeout = {0};
	uint64_t now_ns = begin_ns;

	(void)state;
	front_timeout_restart(&timeout, now_ns);
	while (now_ns < begin_ns + 60 * SECOND_NS - step_ns) {
		const enum front_timeout_state verdict = front_timeout_look(&timeout, now_ns += step_ns);
		const uint64_t since_ns = now_ns - begin_ns;
		const bool told = since_ns == 4 * SECOND_NS || since_ns == 8 * SECOND_NS ||
		    since_ns == 16 * SECOND_NS || since_ns == 32 * SECOND_NS;

		assert_int_equal(verdict, told ? FRONT_TIMEOUT_TELL : FRONT_TIMEOUT_NOT_YET);
	}
	assert_int_equal(front_timeout_look(&timeout, now_ns + step_ns), FRONT_TIMEOUT_OVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_where_and_how),
	    cmocka_unit_test(of_an_attached_process_how_to_detach),
	    cmocka_unit_test(nobody_can_ask),
	    cmocka_unit_test(events_alone),
	    cmocka_unit_test(it_is_told_more_and_more_rarely),
	    cmocka_unit_test(who_says_something_is_waited_for),
	    cmocka_unit_test(a_pause_of_the_front_is_no_silence),
	    cmocka_unit_test(what_was_said_long_ago_is_no_silence),
	    cmocka_unit_test(looks_between_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

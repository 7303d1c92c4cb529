/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/poll_interval.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MS UINT64_C(1000000)

static const uint64_t begin_ns = 3600000 * MS;

static int after(struct poll_interval pace, uint64_t ms)
{
	return (int)(poll_interval_timeout_ns(&pace, begin_ns + ms * MS) / MS);
}

static struct poll_interval noted(struct poll_interval_findings found)
{
	struct poll_interval pace;

	poll_interval_begin(&pace, begin_ns - 3000 * MS);
	poll_interval_note(&pace, &(struct poll_interval_findings){0}, begin_ns - 100 * MS);
	poll_interval_note(&pace, &found, begin_ns);
	return pace;
}

static void nothing_happens(void **state)
{
	struct poll_interval pace = noted((struct poll_interval_findings){0});

	assert_int_equal(40, after(pace, 0));
	assert_int_equal(40, after(pace, 100000));
}

static void samples_slow_down_by_steps(void **state)
{
	struct poll_interval few = noted((struct poll_interval_findings){.samples = 1});

	assert_int_equal(10, after(few, 0));
	assert_int_equal(10, after(few, 199));
	assert_int_equal(20, after(few, 200));
	assert_int_equal(20, after(few, 1999));
	assert_int_equal(40, after(few, 2000));
}

/* 64 samples are waited for, for 2 ms at least and 10 ms at most. */
static void many_samples_are_looked_for_at_their_rate(void **state)
{
	struct poll_interval pace = noted((struct poll_interval_findings){.samples = 1200}); /* in 100 ms */

	assert_int_equal(5, after(pace, 0));
	assert_int_equal(5, after(pace, 199));
	assert_int_equal(20, after(pace, 200));
	pace = noted((struct poll_interval_findings){.samples = 8000});
	assert_int_equal(2, after(pace, 199));
	/* one look that finds little, or nothing, does not make it slow again */
	poll_interval_note(&pace, &(struct poll_interval_findings){.samples = 1}, begin_ns + 100 * MS);
	assert_int_equal(3, after(pace, 100));
	poll_interval_note(&pace, &(struct poll_interval_findings){0}, begin_ns + 103 * MS);
	assert_int_equal(3, after(pace, 103));
	for (uint64_t look = 1; look <= 30; look++)
		poll_interval_note(
		    &pace, &(struct poll_interval_findings){.samples = 1}, begin_ns + (103 + look * 10) * MS);
	assert_int_equal(9, after(pace, 403));
}

/* The next look comes when 256 more are there, at the rate of the last. */
static void a_flood_is_not_slept_through(void **state)
{
	struct poll_interval pace;

	poll_interval_begin(&pace, begin_ns - 10 * MS);
	poll_interval_note(&pace, &(struct poll_interval_findings){.samples = 5120}, begin_ns);
	assert_true(poll_interval_timeout_ns(&pace, begin_ns) == MS / 2);
	assert_true(poll_interval_timeout_ns(&pace, begin_ns + MS / 4) == MS / 4);
	assert_true(poll_interval_timeout_ns(&pace, begin_ns + MS / 2) == 0);
	assert_true(poll_interval_timeout_ns(&pace, begin_ns + 5 * MS) == 0);
	poll_interval_note(&pace, &(struct poll_interval_findings){.samples = 300}, begin_ns + 10 * MS);
	assert_int_equal(2, after(pace, 10));
	poll_interval_note(&pace, &(struct poll_interval_findings){0}, begin_ns + 12 * MS);
	assert_int_equal(2, after(pace, 12));
}

static void a_new_process_is_looked_at_soon(void **state)
{
	struct poll_interval pace = noted((struct poll_interval_findings){.processes = 1});

	assert_int_equal(2, after(pace, 199));
	assert_int_equal(20, after(pace, 200));
}

static void who_asks_once_may_ask_again(void **state)
{
	struct poll_interval pace = noted((struct poll_interval_findings){.requests = 1});

	assert_int_equal(20, after(pace, 1999));
	assert_int_equal(40, after(pace, 2000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_happens),
	    cmocka_unit_test(samples_slow_down_by_steps),
	    cmocka_unit_test(many_samples_are_looked_for_at_their_rate),
	    cmocka_unit_test(a_flood_is_not_slept_through),
	    cmocka_unit_test(a_new_process_is_looked_at_soon),
	    cmocka_unit_test(who_asks_once_may_ask_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* When snapshots are due that nobody asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/write/interval.h"

#define S UINT64_C(1000000000)

static void the_first_come_early_where_nobody_asked(void **state)
{
	static const uint64_t due_s[] = {5, 10, 20, 40, 60, 120, 180, 240};

	(void)state;
	for (size_t i = 0; i < sizeof(due_s) / sizeof(due_s[0]); i++) {
		assert_int_equal(interval_due_ns(INTERVAL_USUAL, i + 1), due_s[i] * S);
		assert_int_equal(interval_count(INTERVAL_USUAL, due_s[i] * S - 1), i);
		assert_int_equal(interval_count(INTERVAL_USUAL, due_s[i] * S), i + 1);
		assert_int_equal(interval_is_early(INTERVAL_USUAL, due_s[i] * S), due_s[i] < 60);
	}
}

static void an_interval_is_kept(void **state)
{
	static const uint64_t intervals_ns[] = {1000000, S, 60 * S, 3600 * S};

	(void)state;
	for (size_t i = 0; i < sizeof(intervals_ns) / sizeof(intervals_ns[0]); i++)
		for (uint64_t k = 0; k < 5; k++) {
			const uint64_t interval_ns = intervals_ns[i], age_ns = k * interval_ns;

			assert_int_equal(interval_count(interval_ns, age_ns), k);
			assert_int_equal(interval_count(interval_ns, age_ns + interval_ns - 1), k);
			assert_int_equal(interval_due_ns(interval_ns, k + 1), age_ns + interval_ns);
			assert_false(interval_is_early(interval_ns, age_ns));
		}
}

static void no_interval_is_never_due(void **state)
{
	(void)state;
	assert_int_equal(interval_due_ns(0, 1), UINT64_MAX);
	assert_int_equal(interval_count(0, UINT64_MAX), 0);
}

static void the_reason_is_said(void **state)
{
	char text[64];

	(void)state;
	interval_describe(INTERVAL_USUAL, 5 * S, text, sizeof(text));
	assert_string_equal(text, "after 5 s");
	interval_describe(INTERVAL_USUAL, 60 * S, text, sizeof(text));
	assert_string_equal(text, "every 60 s");
	interval_describe(S / 10, 5 * S, text, sizeof(text));
	assert_string_equal(text, "every 0.1 s");
}

/* ---- the clock of a process */

enum { INTERVAL = 1000 };

static void the_clock_keeps_its_phase(void **state)
{
	struct interval_clock periodic;
	uint64_t taken = 0;

	(void)state;
	assert_int_equal(interval_clock_begin(&periodic, 0, INTERVAL, 0), 0);
	assert_false(interval_clock_look(&periodic, INTERVAL, INTERVAL - 1));
	/* looked at every 7: each snapshot is late by up to 6, the next is not later for it */
	for (uint64_t now = 0; now <= 100 * INTERVAL; now += 7) {
		if (!interval_clock_look(&periodic, INTERVAL, now))
			continue;
		taken++;
		assert_true(now >= taken * INTERVAL && now < taken * INTERVAL + 7);
		interval_clock_advance(&periodic, INTERVAL, now);
	}
	assert_int_equal(taken, 99);
	assert_int_equal(periodic.skipped, 0);
}

static void what_cannot_be_made_up_for_is_skipped_and_counted(void **state)
{
	struct interval_clock periodic;

	(void)state;
	interval_clock_begin(&periodic, 0, INTERVAL, 0);
	/* it is due, but the writer is busy */
	assert_true(interval_clock_look(&periodic, INTERVAL, 1 * INTERVAL + 1));
	assert_true(interval_clock_look(&periodic, INTERVAL, 1 * INTERVAL + 999));
	assert_int_equal(periodic.skipped, 0);
	assert_true(interval_clock_look(&periodic, INTERVAL, 4 * INTERVAL + 1));
	assert_int_equal(periodic.skipped, 3);
	interval_clock_advance(&periodic, INTERVAL, 4 * INTERVAL + 1);
	assert_false(interval_clock_look(&periodic, INTERVAL, 4 * INTERVAL + 2));
	assert_int_equal(periodic.due_ns, 5 * INTERVAL);
	assert_int_equal(periodic.skipped, 3);
}

static void a_clock_without_an_interval_is_never_due(void **state)
{
	struct interval_clock periodic;

	(void)state;
	interval_clock_begin(&periodic, 0, 0, 0);
	assert_false(interval_clock_look(&periodic, 0, UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_first_come_early_where_nobody_asked),
	    cmocka_unit_test(an_interval_is_kept),
	    cmocka_unit_test(no_interval_is_never_due),
	    cmocka_unit_test(the_reason_is_said),
	    cmocka_unit_test(the_clock_keeps_its_phase),
	    cmocka_unit_test(what_cannot_be_made_up_for_is_skipped_and_counted),
	    cmocka_unit_test(a_clock_without_an_interval_is_never_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

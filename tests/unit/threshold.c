/* SPDX-License-Identifier: Apache-2.0 */
/* When a threshold is crossed, and when there is a snapshot for it, of values as they come. */
#include "sampler/write/threshold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND = 1000000000, LIMIT_S = 10 };

static const struct threshold level = {THRESHOLD_RSS, false, 1000};
static const struct threshold growth = {THRESHOLD_INUSE, true, 100};

/*
 * Looks, one after the other, each "SECOND:BYTES", with "^HIGHEST" if the value was higher since the one
 * before, and "!" if a snapshot is due.
 */
static struct threshold_state follow(const struct threshold *threshold, uint64_t limit_s, const char *looks)
{
	const struct threshold_reading nothing = {0};
	struct threshold_state state;

	threshold_begin(threshold, &state, &nothing, true);
	while (*looks) {
		char *end;
		uint64_t now_ns = (1 + strtoull(looks, &end, 10)) * SECOND;
		struct threshold_reading reading = {.bytes = strtoull(end + 1, &end, 10)};

		reading.highest_bytes = *end == '^' ? strtoull(end + 1, &end, 10) : reading.bytes;
		if (threshold_look(threshold, &state, &reading, now_ns, limit_s * SECOND) != (*end == '!'))
			fail_msg("not as in: %s", looks);
		looks = end + strspn(end, "! ");
	}
	return state;
}

static void a_level_is_reached_once(void **state)
{
	struct threshold_state end =
	    follow(&level, 0, "0:999 1:1000! 2:1500 3:1001 4:999 5:1100 6:901 7:2000");

	(void)state;
	assert_int_equal(end.suppressed + end.waiting, 0);
}

static void it_must_fall_by_the_margin(void **state)
{
	(void)state;
	follow(&level, 0, "0:1000! 1:900 2:1000 3:899 4:999 5:1000! 6:5000");
}

/* Two standard errors of an estimate, where that is more than a tenth; half of the level at most. */
static void the_margin_of_an_estimate(void **state)
{
	static const struct {
		uint64_t error_bytes, rearms_below;
	} cases[] = {{0, 900}, {49, 900}, {100, 800}, {250, 500}, {4000, 500}, {UINT64_MAX, 500}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct threshold_state s = {.above = true};
		struct threshold_reading reading = {
		    cases[i].rearms_below, cases[i].rearms_below, cases[i].error_bytes};

		assert_false(threshold_look(&level, &s, &reading, 1, 0));
		assert_true(s.above);
		reading.bytes--;
		assert_false(threshold_look(&level, &s, &reading, 2, 0));
		assert_false(s.above);
	}
}

static void a_spike_between_two_looks(void **state)
{
	(void)state;
	follow(&level, 0, "0:10^999 1:10^1000! 2:10 3:10^1200! 4:950^1300! 5:1000 6:899 7:1000!");
	follow(&growth, 0, "0:10^100! 1:10^109 2:109 3:10^110! 4:110!");
}

static void growth_is_since_the_last_snapshot(void **state)
{
	(void)state;
	follow(&growth, 0, "0:99 1:100! 2:199 3:20 4:199 5:230! 6:329 7:990! 8:1089 9:1090!");
}

static void what_a_process_begins_with_it_did_not_cross(void **state)
{
	const struct threshold_reading first = {1500, 1500, 0}, later = {1599, 1599, 0},
	                               more = {1600, 1600, 0}, less = {800, 800, 0};
	struct threshold_state s;

	(void)state;
	threshold_begin(&level, &s, &first, false);
	assert_false(threshold_look(&level, &s, &first, 1, 0));
	assert_false(threshold_look(&level, &s, &more, 2, 0));
	assert_false(threshold_look(&level, &s, &less, 3, 0));
	assert_true(threshold_look(&level, &s, &more, 4, 0));
	threshold_begin(&growth, &s, &first, false);
	assert_false(threshold_look(&growth, &s, &first, 1, 0));
	assert_false(threshold_look(&growth, &s, &later, 2, 0));
	assert_true(threshold_look(&growth, &s, &more, 3, 0));
	threshold_begin(&level, &s, &first, true);
	assert_true(threshold_look(&level, &s, &first, 1, 0));
}

/* One that is still there when the limit ends is taken then; what went is counted. */
static void a_level_within_the_limit(void **state)
{
	struct threshold_state s;

	(void)state;
	s = follow(&level, LIMIT_S, "0:1000! 1:10 2:1000 3:1000 9:1000 10:1000! 21:1000");
	assert_int_equal(s.suppressed + s.waiting, 0);
	s = follow(&level, LIMIT_S, "0:1000! 1:10 2:1000 3:10 4:10^1000 10:10 11:1000!");
	assert_int_equal(s.suppressed, 2);
	s = follow(&level, LIMIT_S, "0:1000! 1:10 2:1000 3:10 4:1000 5:10 6:1000 12:1000!");
	assert_int_equal(s.suppressed, 2);
	s = follow(&level, LIMIT_S, "0:1000! 1:10 2:1000 10:950");
	assert_int_equal(s.suppressed, 1);
}

static void growth_within_the_limit(void **state)
{
	struct threshold_state s;

	(void)state;
	/* Without the limit there would be snapshots at 200, 300 and 400 too. */
	s = follow(&growth, LIMIT_S, "0:100! 1:200 2:300 3:310 4:400 10:450! 20:549 30:550!");
	assert_int_equal(s.suppressed, 2);
	s = follow(&growth, LIMIT_S, "0:100! 1:200 2:300 3:50 10:199 11:200!");
	assert_int_equal(s.suppressed, 2);
}

/* Whatever a hostile process claims. */
static void numbers_that_cannot_be(void **state)
{
	static const uint64_t odd[] = {0, 1, UINT64_MAX, INT64_MAX, UINT64_MAX - 1, 1000, 0};
	static const struct threshold most = {THRESHOLD_ALLOC, true, INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		const struct threshold *const rules[] = {&level, &growth, &most};

		for (size_t r = 0; r < 3; r++) {
			struct threshold_state s;
			struct threshold_reading reading = {odd[i], odd[i], odd[6 - i]};

			threshold_begin(rules[r], &s, &reading, i % 2);
			for (size_t j = 0; j < sizeof(odd) / sizeof(odd[0]); j++) {
				reading = (struct threshold_reading){odd[j], odd[j], odd[i]};
				(void)threshold_look(rules[r], &s, &reading, j, UINT64_MAX);
				(void)threshold_distance(rules[r], &s, &reading);
			}
			assert_true(s.suppressed + s.waiting <= sizeof(odd) / sizeof(odd[0]));
		}
	}
}

static void the_way_to_the_next(void **state)
{
	const struct threshold_reading reading = {400, 400, 0}, high = {1700, 1700, 0};
	struct threshold_state s;

	(void)state;
	threshold_begin(&level, &s, &reading, true);
	assert_int_equal(threshold_distance(&level, &s, &reading), 600);
	assert_int_equal(threshold_distance(&level, &s, &high), 700);
	s.above = true;
	assert_int_equal(threshold_distance(&level, &s, &high), 800);
	threshold_begin(&growth, &s, &reading, false);
	assert_int_equal(threshold_distance(&growth, &s, &reading), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_level_is_reached_once),
	    cmocka_unit_test(it_must_fall_by_the_margin),
	    cmocka_unit_test(the_margin_of_an_estimate),
	    cmocka_unit_test(a_spike_between_two_looks),
	    cmocka_unit_test(growth_is_since_the_last_snapshot),
	    cmocka_unit_test(what_a_process_begins_with_it_did_not_cross),
	    cmocka_unit_test(a_level_within_the_limit),
	    cmocka_unit_test(growth_within_the_limit),
	    cmocka_unit_test(numbers_that_cannot_be),
	    cmocka_unit_test(the_way_to_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

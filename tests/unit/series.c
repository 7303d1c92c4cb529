/* SPDX-License-Identifier: Apache-2.0 */
/* Points over time, a bounded number of them. */
#include "pprof/table/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { POINTS = 8, STEP = 5 };

static const struct series_shape shape = {
    .point_bytes = sizeof(int64_t), .points_max = POINTS, .first_step_ns = STEP};

/* Asks at every nanosecond, as a caller does that takes what is due. */
static void note_until(struct series *series, int64_t end_ns)
{
	for (int64_t now_ns = 0; now_ns < end_ns; now_ns++) {
		const int64_t *points = series->points;

		if (!series->count || now_ns - points[series->count - 1] >= series->step_ns)
			*(int64_t *)series_add(series, &shape) = now_ns;
	}
}

static void test_all_points_are_kept_while_there_is_room(void **state)
{
	struct series series = {0};

	(void)state;
	note_until(&series, POINTS * STEP);
	assert_int_equal(series.count, POINTS);
	assert_int_equal(series.step_ns, STEP);
	for (size_t i = 0; i < POINTS; i++)
		assert_int_equal(((int64_t *)series.points)[i], i * STEP);
	series_fini(&series);
	assert_null(series.points);
}

/* The first point stays, whatever the number of points, and each distance is one step, which doubles. */
static void test_all_of_the_time_is_covered(void **state)
{
	struct series series = {0};

	(void)state;
	note_until(&series, 1000 * POINTS * STEP);
	assert_in_range(series.count, POINTS / 2 + 1, POINTS);
	assert_int_equal(*(int64_t *)series.points, 0);
	for (size_t i = 1; i < series.count; i++)
		assert_int_equal(
		    ((int64_t *)series.points)[i] - ((int64_t *)series.points)[i - 1], series.step_ns);
	assert_int_equal(series.step_ns, 1024 * STEP);
	assert_true(
	    ((int64_t *)series.points)[series.count - 1] >= 1000 * POINTS * STEP - 2 * series.step_ns);
	series_fini(&series);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_all_points_are_kept_while_there_is_room),
	    cmocka_unit_test(test_all_of_the_time_is_covered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

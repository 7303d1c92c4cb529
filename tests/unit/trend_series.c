/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of a sum that is read again and again, and whether it grows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/analysis/trend_series.h"

#include <math.h>

#define SAMPLE (512.0 * 1024)

/* Read once a second, sampled at the default period. */
static void note(struct trend_series *series, double time_s, double inuse_bytes, double allocated_bytes)
{
	const struct trend_point point = {.time_s = time_s,
	    .inuse_bytes = inuse_bytes,
	    .inuse_variance = inuse_bytes * SAMPLE,
	    .inuse_samples = inuse_bytes / SAMPLE,
	    .allocated_bytes = allocated_bytes,
	    .allocated_variance = allocated_bytes * SAMPLE,
	    .allocated_samples = allocated_bytes / SAMPLE};

	if (trend_series_is_due(series, time_s))
		trend_series_note(series, &point);
}

static void it_covers_all_of_the_time(void **state)
{
	struct trend_series series = {0};

	(void)state;
	for (double t = 0; t < 86400; t++)
		note(&series, t, 1e8, 1e8 + t);
	const struct trend_point *points = series.series.points;
	const size_t count = series.series.count;
	const double step_s = (double)series.series.step_ns / 1e9;
	assert_in_range(count, TREND_SERIES_POINTS / 2, TREND_SERIES_POINTS);
	assert_true(points[0].time_s == 0);
	assert_true(points[count - 1].time_s > 86400 - 2 * step_s);
	for (size_t i = 1; i < count; i++)
		assert_true(points[i].time_s - points[i - 1].time_s >= step_s);
	trend_series_fini(&series);
}

static void too_few_points_say_nothing(void **state)
{
	struct trend_series series = {0};

	(void)state;
	assert_null(trend_series_find(&series));
	for (double t = 5; t < 20; t++)
		note(&series, t, 1e8 * t, 1e8 * t);
	assert_null(trend_series_find(&series));
	note(&series, 20, 2e9, 2e9);
	assert_int_equal(trend_series_find(&series)->kind, TREND_GROWS);
	trend_series_fini(&series);
}

/* 1 MiB a second beside a heap of 64 MiB: since when, and how fast. */
static void a_leak_is_found(void **state)
{
	struct trend_series series = {0};
	const struct trend *trend;

	(void)state;
	for (double t = 5; t <= 300; t++) {
		const double leaked = (t > 100 ? t - 100 : 0) * 1024 * 1024;

		note(&series, t, 64 * 1024 * 1024 + leaked, 128 * 1024 * 1024 + 1000 * t + leaked);
	}
	trend = trend_series_find(&series);
	assert_int_equal(trend->kind, TREND_GROWS);
	assert_true(
	    fabs(((const struct trend_point *)series.series.points)[trend->since].time_s - 100) <= 20);
	assert_true(fabs(trend->bytes_per_s / (1024 * 1024) - 1) < 0.1);
	trend_series_fini(&series);
}

/* A program that fills its caches is not called one that grows any more once they are full, nor is one whose
 * heap goes up and down, nor a single step, whenever it is asked. */
static void what_is_steady_does_not_grow(void **state)
{
	struct trend_series full = {0}, saw = {0}, step = {0};

	(void)state;
	for (int t = 5; t <= 3600; t++) {
		const double time = t, churn = 4 * SAMPLE * time;

		note(&full, time, 1e8 * (1 - exp(-time / 60)), 2e8 + churn);
		note(&saw, time, 1e8 + (t % 13) * 1e6, 2e8 + churn);
		note(&step, time, t > 1000 ? 2e8 : 1e8, (t > 1000 ? 3e8 : 2e8) + churn);
		assert_true(!trend_series_find(&saw) || trend_series_find(&saw)->kind != TREND_GROWS);
		assert_true(!trend_series_find(&step) || trend_series_find(&step)->kind != TREND_GROWS);
	}
	assert_int_not_equal(trend_series_find(&full)->kind, TREND_GROWS);
	trend_series_fini(&full);
	trend_series_fini(&saw);
	trend_series_fini(&step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_covers_all_of_the_time),
	    cmocka_unit_test(too_few_points_say_nothing),
	    cmocka_unit_test(a_leak_is_found),
	    cmocka_unit_test(what_is_steady_does_not_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

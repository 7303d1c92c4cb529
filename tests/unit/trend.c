/* SPDX-License-Identifier: Apache-2.0 */
/* Does a number of bytes in use grow? And does a series that is asked again and again? */
#include "pprof/analysis/trend.h"
#include "pprof/analysis/moments.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Series whose answer is known, drawn by no chance: what grows, what rose, and what only looks so. How often
 * chance itself deceives the test says `make growth`. */

#define MIB    1048576.0
#define PERIOD (0.5 * MIB)

enum { POINTS = 20 };

static struct trend_point points[POINTS];

/* Everything is sampled once in PERIOD bytes. */
static void put(size_t at, double time_s, double inuse_mib, double allocated_mib)
{
	points[at] =
	    (struct trend_point){time_s, inuse_mib * MIB, inuse_mib * MIB * PERIOD, inuse_mib * MIB / PERIOD,
	        allocated_mib * MIB, allocated_mib * MIB * PERIOD, allocated_mib * MIB / PERIOD};
}

static struct trend find(size_t count)
{
	return trend_find(points, count, trend_bar(10, count));
}

static void a_leak_grows(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, 3.0 * (double)i, 3.0 * (double)i);
	const struct trend trend = find(POINTS);
	assert_int_equal(trend.kind, TREND_GROWS);
	assert_int_equal(trend.since, 0);
	assert_int_equal(trend.until, POINTS - 1);
	assert_true(fabs(trend.bytes_per_s - 0.05 * MIB) < 1);
	assert_true(fabs(trend.bytes - 57 * MIB) < 1);
	assert_int_equal(find(TREND_POINTS_LEAST - 1).kind, TREND_NONE);
}

static void a_leak_that_began_late_has_its_beginning(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < POINTS; i++) {
		const double leaked = i > 13 ? 5.0 * (double)(i - 13) : 0;

		put(i, 60.0 * (double)i, 40 + leaked, 40 + leaked);
	}
	const struct trend trend = find(POINTS);
	assert_int_equal(trend.kind, TREND_GROWS);
	assert_int_equal(trend.since, 13);
	assert_true(fabs(trend.bytes_per_s - 5 * MIB / 60) < 1);
}

static void a_step_rose_and_grows_no_more(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, i < 9 ? 30 : 50, i < 9 ? 30 : 50);
	const struct trend trend = find(POINTS);
	assert_int_equal(trend.kind, TREND_ROSE);
	assert_int_equal(trend.since, 8);
	assert_int_equal(trend.until, 9);
	assert_true(fabs(trend.bytes - 20 * MIB) < 1);
}

static void a_cache_that_has_filled_grows_no_more(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, fmin(10.0 * (double)(i + 1), 60), 10.0 * (double)(i + 1));
	assert_int_equal(find(5).kind, TREND_GROWS); /* nobody can know yet */
	assert_int_not_equal(find(POINTS).kind, TREND_GROWS);
}

/* All that came is kept, but since the middle nothing comes. */
static void a_leak_that_has_ended_grows_no_more(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, 5.0 * fmin((double)i, 10), 5.0 * fmin((double)i, 10));
	assert_int_equal(find(POINTS).kind, TREND_ROSE);
}

/* A third of what came is kept: growth where the sum has never fallen. */
static void what_keeps_little_has_never_fallen(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < 6; i++)
		put(i, 60.0 * (double)i, 100 + 100.0 * (double)i, 300 + 300.0 * (double)i);
	assert_int_equal(find(6).kind, TREND_GROWS);
	put(1, 60, 400, 600);
	assert_int_equal(find(6).kind, TREND_NONE);
}

/* An eighth of what came is kept, as in a server that works in blocks and forgets one: growth is so large
 * that blocks look long-lived, and few points are left that are far enough apart, but they lie on a line. */
static void what_keeps_an_eighth_grows(void **unused)
{
	static const double times_s[] = {5, 10, 20, 40, 60, 120, 180, 240, 300, 360};

	(void)unused;
	for (size_t i = 0; i < 10; i++)
		put(i, times_s[i], 1 + 1.0 * times_s[i], 8 * times_s[i]);
	assert_int_equal(trend_find(points, 10, trend_bar(2, 10)).kind, TREND_GROWS);
	/* and so far from it that chance may have it so */
	for (size_t i = 0; i < 10; i++)
		put(i, times_s[i], 1 + 1.0 * times_s[i] + (i % 2 ? 60 : 0), 8 * times_s[i]);
	assert_int_equal(trend_find(points, 10, trend_bar(2, 10)).kind, TREND_NONE);
}

/* Half of the points before a step and half after it are near a line too. */
static void a_step_is_no_line(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, i < 9 ? 1 : 21, 30.0 * (double)i);
	for (size_t count = TREND_POINTS_LEAST; count <= POINTS; count++)
		assert_int_not_equal(find(count).kind, TREND_GROWS);
}

/* Snapshots come 5, 10, 20, 40, 60 and 120 s after the start: the last step has most of a leak that began
 * late. */
static void a_long_step_has_more_of_a_rise(void **unused)
{
	static const double times_s[] = {5, 10, 20, 40, 60, 120};

	(void)unused;
	for (size_t i = 0; i < 6; i++) {
		const double leaked = 4 * fmax(times_s[i] - 30, 0);

		put(i, times_s[i], 15 + leaked, 15 + leaked);
	}
	assert_int_equal(find(6).kind, TREND_GROWS);
}

/* Each step is larger than all before it: whether that goes on nobody knows, but flat it is not. */
static void what_rises_ever_faster_is_not_flat(void **unused)
{
	static const double inuse_mib[] = {10, 40, 130, 490};

	(void)unused;
	for (size_t i = 0; i < 4; i++)
		put(i, 60.0 * (double)i, inuse_mib[i], inuse_mib[i]);
	assert_int_equal(find(4).kind, TREND_NONE);
}

/* Of blocks that live for minutes the few samples tell the same again and again, and none at first tells
 * little. */
static void a_few_samples_are_no_order(void **unused)
{
	static const double inuse_mib[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 4, 4};

	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, inuse_mib[i] / 2, inuse_mib[i] / 2);
	for (size_t count = TREND_POINTS_LEAST; count <= POINTS; count++)
		assert_int_equal(find(count).kind, TREND_NONE);
}

/* In use is what one point of many finds of a saw's tooth; all that came has gone again. */
static void teeth_do_not_grow(void **unused)
{
	static const double phases[] = {0.1, 0.7, 0.4, 0.9, 0.2, 0.6, 0.3, 0.8, 0.5};

	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, 40 * phases[i % 9], 1000 + 400.0 * (double)i);
	for (size_t count = TREND_POINTS_LEAST; count <= POINTS; count++)
		assert_int_equal(find(count).kind, TREND_NONE);
}

static void one_batch_is_no_growth(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, i == POINTS - 1 ? 60 : 10, i == POINTS - 1 ? 60 : 10);
	assert_int_equal(find(POINTS).kind, TREND_NONE);
}

/* 5 MiB a minute below 1 GiB a minute of short-lived blocks: only the order of the points tells. */
static void a_leak_below_churn_grows(void **unused)
{
	static const double noise[] = {0.5, -1, 1, -0.5, 0, 1, -1, 0.5, -0.5, 0};

	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, 50 + 5.0 * (double)i + 3 * noise[i % 10], 1024.0 * (double)(i + 1));
	const struct trend trend = find(POINTS);
	assert_int_equal(trend.kind, TREND_GROWS);
	assert_true(fabs(trend.bytes_per_s * 60 / MIB - 5) < 0.5);
	/* Falling, the same is nothing. */
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, 250 - 5.0 * (double)i + 3 * noise[i % 10], 1024.0 * (double)(i + 1));
	assert_int_equal(find(POINTS).kind, TREND_NONE);
}

/* Blocks that live as long as the recording: what is in use wanders slowly, and its order says nothing. */
static void what_wanders_slowly_does_not_grow(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < POINTS; i++)
		put(i, 60.0 * (double)i, 100 + 0.3 * (double)i, 5.0 * (double)i);
	assert_int_equal(find(POINTS).kind, TREND_NONE);
}

/* Profiles of other tools may not say what was allocated. */
static void without_allocations_only_the_order_counts(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < POINTS; i++) {
		put(i, 60.0 * (double)i, 3.0 * (double)i, 0);
		points[i].allocated_bytes = points[i].allocated_variance = points[i].allocated_samples = NAN;
	}
	assert_int_equal(find(POINTS).kind, TREND_GROWS);
	for (size_t i = 0; i < POINTS; i++)
		points[i].inuse_bytes = (double)(7 * i % POINTS) * MIB;
	assert_int_equal(find(POINTS).kind, TREND_NONE);
}

/* Nothing that a file may say ends the test, or makes it find something in nothing. */
static void any_numbers(void **unused)
{
	static const double values[] = {0, -1, 1e300, -1e300, INFINITY, 1e-300, 4, NAN};

	(void)unused;
	for (size_t first = 0; first < 8; first++)
		for (size_t second = 0; second < 8; second++) {
			for (size_t i = 0; i < POINTS; i++)
				points[i] = (struct trend_point){values[(first + i) % 8], values[second],
				    values[first], values[(second + i) % 8], values[first], values[second],
				    values[i % 8]};
			(void)find(POINTS);
		}
	for (size_t i = 0; i < POINTS; i++)
		put(i, 0, 3.0 * (double)i, 3.0 * (double)i); /* all at one time */
	(void)find(POINTS);
}

/* ---- several processes */

static void each_moment_has_every_process(void **unused)
{
	static const int64_t a_ns[] = {10, 20, 30, 40}, b_ns[] = {11, 21}, c_ns[] = {33, 43};
	const struct moments_process processes[] = {
	    {.start_ns = 1, .times_ns = a_ns, .count = 4},
	    {.start_ns = 2, .times_ns = b_ns, .count = 2, .end_ns = 25},
	    {.start_ns = 28, .times_ns = c_ns, .count = 2},
	};
	int64_t moments_ns[MOMENTS_MOST];

	(void)unused;
	assert_int_equal(moments_choose(moments_ns, MOMENTS_MOST, processes, 3), 4);
	assert_true(moments_ns[0] == 11 && moments_ns[1] == 21 && moments_ns[2] == 33 && moments_ns[3] == 43);
	assert_false(moments_state_at(&processes[2], 21).begun);
	assert_false(moments_state_at(&processes[1], 21).over);
	assert_true(moments_state_at(&processes[1], 33).over);
	assert_int_equal(moments_state_at(&processes[1], 33).index, 1);
	assert_int_equal(moments_state_at(&processes[0], 33).index, 2);
}

/* It began at 5 and is known from 25 on: of the time between nobody knows what it had. */
static void what_is_not_known_is_no_moment(void **unused)
{
	static const int64_t a_ns[] = {10, 20, 30, 40}, b_ns[] = {25, 35};
	const struct moments_process processes[] = {
	    {.start_ns = 1, .times_ns = a_ns, .count = 4}, {.start_ns = 5, .times_ns = b_ns, .count = 2}};
	int64_t moments_ns[MOMENTS_MOST];
	const int count = moments_choose(moments_ns, MOMENTS_MOST, processes, 2);

	(void)unused;
	assert_true(count >= 1);
	assert_true(moments_ns[0] >= 25);
}

static void a_state_just_before_the_end_is_of_the_teardown(void **state)
{
	const int64_t second_ns = INT64_C(1000000000);
	const int64_t each_minute[] = {0, 60 * second_ns, 120 * second_ns}, each_second[] = {0, second_ns};

	(void)state;
	assert_int_equal(moments_running(each_minute, 3, each_minute[2]), 2);
	assert_int_equal(moments_running(each_minute, 3, each_minute[2] + second_ns - 1), 2);
	assert_int_equal(moments_running(each_minute, 3, each_minute[2] + second_ns), 3);
	assert_int_equal(moments_running(each_second, 2, each_second[1] + second_ns / 5), 1);
	assert_int_equal(moments_running(each_second, 2, each_second[1] + second_ns / 2), 2);
	/* Alone, or from a file whose times make no sense. */
	assert_int_equal(moments_running(each_second, 1, each_second[0]), 1);
	assert_int_equal(moments_running(each_second, 0, each_second[0]), 0);
	assert_int_equal(moments_running((const int64_t[]){INT64_MAX, INT64_MIN}, 2, INT64_MAX), 2);
}

/* What is remembered of a sum that is read again and again, and whether it grows. */

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
	const struct trend_point *noted = series.series.points;
	const size_t count = series.series.count;
	const double step_s = (double)series.series.step_ns / 1e9;
	assert_in_range(count, TREND_SERIES_POINTS / 2, TREND_SERIES_POINTS);
	assert_true(noted[0].time_s == 0);
	assert_true(noted[count - 1].time_s > 86400 - 2 * step_s);
	for (size_t i = 1; i < count; i++)
		assert_true(noted[i].time_s - noted[i - 1].time_s >= step_s);
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
	    cmocka_unit_test(a_leak_grows),
	    cmocka_unit_test(a_leak_that_began_late_has_its_beginning),
	    cmocka_unit_test(a_step_rose_and_grows_no_more),
	    cmocka_unit_test(a_cache_that_has_filled_grows_no_more),
	    cmocka_unit_test(a_leak_that_has_ended_grows_no_more),
	    cmocka_unit_test(what_keeps_little_has_never_fallen),
	    cmocka_unit_test(what_keeps_an_eighth_grows),
	    cmocka_unit_test(a_step_is_no_line),
	    cmocka_unit_test(a_long_step_has_more_of_a_rise),
	    cmocka_unit_test(what_rises_ever_faster_is_not_flat),
	    cmocka_unit_test(a_few_samples_are_no_order),
	    cmocka_unit_test(teeth_do_not_grow),
	    cmocka_unit_test(one_batch_is_no_growth),
	    cmocka_unit_test(a_leak_below_churn_grows),
	    cmocka_unit_test(what_wanders_slowly_does_not_grow),
	    cmocka_unit_test(without_allocations_only_the_order_counts),
	    cmocka_unit_test(any_numbers),
	    cmocka_unit_test(each_moment_has_every_process),
	    cmocka_unit_test(what_is_not_known_is_no_moment),
	    cmocka_unit_test(a_state_just_before_the_end_is_of_the_teardown),
	    cmocka_unit_test(it_covers_all_of_the_time),
	    cmocka_unit_test(too_few_points_say_nothing),
	    cmocka_unit_test(a_leak_is_found),
	    cmocka_unit_test(what_is_steady_does_not_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* The hook's decision: how often is a block of a size chosen, and by whom. */
#include "preload/sample.h"
#include "proto/weight.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t period_bytes;
static bool off;

static int seed(void **unused)
{
	const unsigned char random[16] = "a fixed seed 123";

	sample_seed(random);
	return 0;
}

static void set_period(uint64_t bytes)
{
	period_bytes = bytes;
	sample_thread.period_bytes = 0;
	sample_thread.left_bytes = 0;
}

/* What malloc does. */
static bool sampled(size_t size)
{
	return sample_count(size) && sample_decide(size, period_bytes, off);
}

static void near(double wanted, double deviation, double got)
{
	if (fabs(got - wanted) > 4.5 * deviation)
		fail_msg("wanted %g +- %g, got %g", wanted, deviation, got);
}

static void every_size_has_its_probability(void **unused)
{
	const size_t sizes[] = {1, 16, 100, 1000, 4096, 10000, 50000};

	set_period(4096);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		double p = -expm1(-(double)sizes[s] / 4096), n = p < 0.01 ? 20e6 : 2e6, count = 0;

		for (double i = 0; i < n; i++)
			count += sampled(sizes[s]);
		near(n * p, sqrt(n * p * (1 - p)), count);
	}
}

/* Sizes mixed: each keeps its own probability, whatever comes before it. */
static void sizes_do_not_influence_each_other(void **unused)
{
	set_period(4096);
	double small = 0, large = 0, n = 3e6;
	for (double i = 0; i < n; i++) {
		small += sampled(64);
		large += sampled(8192);
	}
	double p = -expm1(-64.0 / 4096), q = -expm1(-8192.0 / 4096);
	near(n * p, sqrt(n * p * (1 - p)), small);
	near(n * q, sqrt(n * q * (1 - q)), large);
}

static void first_allocation_of_a_thread_is_like_any(void **unused)
{
	double n = 400000, count = 0, p = -expm1(-500.0 / 4096);

	for (double i = 0; i < n; i++) {
		sample_thread = (struct sample_thread){0}; /* a thread is born */
		period_bytes = 4096;
		count += sampled(500);
	}
	near(n * p, sqrt(n * p * (1 - p)), count);
}

static void period_1_is_everything(void **unused)
{
	set_period(1);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(1, sampled((size_t)i % 100) ? 1 : 0);
	assert_int_equal(1, sample_thread.period_bytes);
}

/* The interval that ends carries the period it was drawn with. */
static void period_changes_between_intervals(void **unused)
{
	set_period(1000);
	while (!sample_count(100))
		;
	period_bytes = 1 << 20;
	sample_decide(100, period_bytes, off);
	while (!sample_count(100))
		;
	uint64_t first = sample_decide(100, period_bytes, off);
	while (!sample_count(100))
		;
	uint64_t second = sample_decide(100, period_bytes, off);
	assert_true(first == 1000 || first == 1 << 20);
	assert_int_equal(1 << 20, second);
}

static void any_period_is_survived(void **unused)
{
	const uint64_t odd[] = {0, 1ull << 41, UINT64_MAX, WEIGHT_PERIOD_MAX};

	for (size_t i = 0; i < 4; i++) {
		set_period(odd[i]);
		for (int n = 0; n < 100; n++)
			if (sample_count(1000))
				sample_decide(1000, period_bytes, off);
		assert_in_range(sample_thread.period_bytes, 1, WEIGHT_PERIOD_MAX);
	}
}

/* An allocation that fails has consumed its bytes, or ended an interval: the next one has its probability all
 * the same, of whatever sizes both are. */
static void failed_allocations_are_no_bias(void **unused)
{
	const size_t sizes[] = {100, 4096, 50000, SIZE_MAX};

	set_period(65536);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		double p = -expm1(-4096.0 / 65536), n = 2e6, count = 0;

		for (double i = 0; i < n; i++) {
			sampled(sizes[s]);
			count += sampled(4096);
		}
		near(n * p, sqrt(n * p * (1 - p)), count);
	}
}

static void nothing_ends_what_never_ends(void **unused)
{
	sample_thread.left_bytes = SAMPLE_NEVER;
	assert_false(sample_count(PTRDIFF_MAX));
}

static void off_samples_nothing(void **unused)
{
	set_period(1);
	off = true;
	for (int i = 0; i < 100; i++)
		assert_false(sampled(100));
	off = false;
	assert_true(sampled(100));
}

/* 64 children of one parent draw 64 different intervals. */
static void forked_children_draw_anew(void **unused)
{
	const uint64_t period = UINT64_C(1) << 40; /* of 1 MiB, one run in a thousand draws one twice */

	set_period(period);
	sampled(1);
	uint64_t left[64];
	for (int i = 0; i < 64; i++) {
		int ends[2];

		assert_int_equal(0, pipe(ends));
		pid_t pid = fork();
		if (pid == 0) {
			sample_forked((uint32_t)getpid(), (uint64_t)i);
			_exit(write(ends[1], &sample_thread.left_bytes, 8) == 8 ? 0 : 1);
		}
		assert_int_equal(8, read(ends[0], &left[i], 8));
		waitpid(pid, NULL, 0);
		close(ends[0]);
		close(ends[1]);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(left[j], left[i]);
	}
	double mean = 0;
	for (int i = 0; i < 64; i++)
		mean += (double)left[i] / 64;
	near((double)period, (double)period / 8, mean);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_size_has_its_probability),
	    cmocka_unit_test(sizes_do_not_influence_each_other),
	    cmocka_unit_test(first_allocation_of_a_thread_is_like_any),
	    cmocka_unit_test(period_1_is_everything),
	    cmocka_unit_test(period_changes_between_intervals),
	    cmocka_unit_test(any_period_is_survived),
	    cmocka_unit_test(failed_allocations_are_no_bias),
	    cmocka_unit_test(nothing_ends_what_never_ends),
	    cmocka_unit_test(off_samples_nothing),
	    cmocka_unit_test(forked_children_draw_anew),
	};

	return cmocka_run_group_tests(tests, seed, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* The hook's arithmetic without libm against libm, and the estimator's expectation against the truth. */
#include "proto/weight.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static double relative(double got, double wanted)
{
	return fabs(got - wanted) / fabs(wanted);
}

static void probability_is_expm1(void **unused)
{
	for (int i = 0; i < 2000000; i++) {
		double x = exp2(-47 + (double)(next() >> 11) * 0x1p-53 * 53); /* 2^-47 .. 64 */

		assert_true(relative(weight_probability(x), -expm1(-x)) < 4e-16);
	}
	assert_true(weight_probability(41) == 1);
	assert_true(weight_probability(1e300) == 1);
}

static void logarithm_is_log(void **unused)
{
	for (int i = 0; i < 2000000; i++) {
		double u = (double)((next() >> 11) + 1) * 0x1p-53;
		double wanted = -log(u), got = weight_minus_log(u);

		assert_true(wanted == 0 ? fabs(got) < 1e-16 : fabs(got - wanted) < 4e-16 * fmax(1, wanted));
	}
	assert_true(weight_minus_log(1) == 0);
	assert_true(relative(weight_minus_log(0x1p-53), 53 * M_LN2) < 1e-15);
}

static void intervals_have_the_mean(void **unused)
{
	const uint64_t periods[] = {2, 64, 4096, 524288, 1ull << 40};

	for (size_t p = 0; p < sizeof(periods) / sizeof(periods[0]); p++) {
		double sum = 0, squares = 0;
		const int count = 2000000;

		for (int i = 0; i < count; i++) {
			double interval = (double)weight_interval(next(), periods[p]);

			sum += interval;
			squares += interval * interval;
		}
		double mean = sum / count, deviation = sqrt(squares / count - mean * mean);
		/* floor() of an exponential: geometric, mean 1 / (e^(1/T) - 1) */
		double wanted = 1 / expm1(1 / (double)periods[p]);
		assert_true(fabs(mean - wanted) < 5 * deviation / sqrt(count));
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(0, weight_interval(next(), 1));
	assert_int_equal(0, weight_interval(next(), 0));
}

/* For every size: probability times weight is the size, and one. */
static void expectation_is_the_truth(void **unused)
{
	for (int i = 0; i < 1000000; i++) {
		uint64_t size = 1 + (next() >> (17 + next() % 47)),
		         period = 2 + (next() >> (24 + next() % 40));
		struct weight weight = weight_of(size, period);
		double p = weight_probability((double)size / (double)period);
		double bytes = (double)weight.bytes_q8 / 256, objects = (double)weight.objects_q16 / 65536;

		/* Rounded to 1/256 and 1/65536. */
		assert_true(fabs(bytes * p - (double)size) <= (double)size * 1e-15 + 1.0 / 512);
		assert_true(fabs(objects * p - 1) <= 1e-15 + p / 131072 + 1e-12);
	}
}

/* It is drawn as often as a block of 1 byte is, and has no bytes. */
static void a_block_of_no_bytes_is_an_object(void **unused)
{
	for (int i = 0; i < 100000; i++) {
		uint64_t period = 1 + (next() >> (24 + next() % 40));
		const struct weight none = weight_of(0, period), one = weight_of(1, period);

		assert_int_equal(none.bytes_q8, 0);
		assert_true(none.bytes_variance == 0);
		assert_int_equal(none.objects_q16, one.objects_q16);
		assert_true(none.objects_variance == one.objects_variance);
	}
}

static void period_1_is_exact(void **unused)
{
	for (uint64_t size = 0; size < 1ull << 46; size = size * 3 + 1) {
		struct weight weight = weight_of(size, 1);

		assert_int_equal(size << 8, weight.bytes_q8);
		assert_int_equal(1 << 16, weight.objects_q16);
		assert_true(weight.bytes_variance == 0 && weight.objects_variance == 0);
	}
}

/* A hostile target's numbers trap nothing and stay in range. */
static void anything_is_clamped(void **unused)
{
	const uint64_t odd[] = {0, 1, 2, 1ull << 40, (1ull << 40) + 1, 1ull << 47, 1ull << 63, UINT64_MAX};

	for (size_t i = 0; i < 8; i++)
		for (size_t j = 0; j < 8; j++) {
			struct weight weight = weight_of(odd[i], odd[j]);

			assert_true((weight.bytes_q8 > 0) == (odd[i] > 0) && weight.bytes_q8 <= 1ull << 56);
			assert_true(weight.objects_q16 >= 1 << 16 && weight.objects_q16 <= 1ull << 57);
			assert_true(weight_fixed_bytes(weight.bytes_variance) <= 1ull << 62);
		}
}

/* A block twice the period counts 1.157 times, with a variance of 0.18: no whole number. */
static void small_variances_are_kept(void **unused)
{
	struct weight weight = weight_of(2 << 20, 1 << 20);
	double p = -expm1(-2);

	assert_true(fabs(weight.objects_variance - (1 - p) / (p * p)) < 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(probability_is_expm1),
	    cmocka_unit_test(logarithm_is_log),
	    cmocka_unit_test(intervals_have_the_mean),
	    cmocka_unit_test(expectation_is_the_truth),
	    cmocka_unit_test(a_block_of_no_bytes_is_an_object),
	    cmocka_unit_test(period_1_is_exact),
	    cmocka_unit_test(anything_is_clamped),
	    cmocka_unit_test(small_variances_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

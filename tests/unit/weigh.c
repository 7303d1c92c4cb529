/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* The hook's arithmetic in programs that have changed their floating-point environment. */
#include "preload/weigh.h"
#include "proto/weight.h"

#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { INPUTS = 20000 };

static const int directions[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};

static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t any_size(void)
{
	return 1 + (next() >> (17 + next() % 47));
}

static uint64_t any_period(void)
{
	return 1 + (next() >> (24 + next() % 40));
}

/* What both sides must agree on, by the sampler's arithmetic. */
static struct weighed wanted[INPUTS];
static uint64_t intervals[INPUTS];

static int compute_wanted(void **unused)
{
	state = 88172645463325252u;
	for (int i = 0; i < INPUTS; i++) {
		const uint64_t size = any_size(), left = i % 2 ? UINT64_MAX : any_size(),
		               period = any_period();
		const struct weight weight = weight_of_part(size, left, period);

		wanted[i] = (struct weighed){weight.bytes_q8, weight.objects_q16,
		    weight_fixed_bytes(weight.bytes_variance), weight_is_large(weight.bytes_variance)};
		intervals[i] = weight_interval(next(), period);
	}
	return 0;
}

/* Returns the number of results that are not those that are wanted. */
static int differences(void)
{
	int count = 0;

	state = 88172645463325252u;
	for (int i = 0; i < INPUTS; i++) {
		const uint64_t size = any_size(), left = i % 2 ? UINT64_MAX : any_size(),
		               period = any_period();
		const struct weighed got = weigh(size, left, period);

		count += got.bytes_q8 != wanted[i].bytes_q8 || got.objects_q16 != wanted[i].objects_q16 ||
		    got.bytes_variance != wanted[i].bytes_variance || got.large != wanted[i].large;
		count += weigh_interval(next(), period) != intervals[i];
	}
	return count;
}

static void sums_do_not_depend_on_the_direction(void **unused)
{
	for (size_t i = 0; i < sizeof(directions) / sizeof(directions[0]); i++) {
		fesetround(directions[i]);
		const int different = differences(), direction = fegetround();
		fesetround(FE_TONEAREST);
		assert_int_equal(0, different);
		assert_int_equal(directions[i], direction);
	}
}

static void flags_are_the_programs(void **unused)
{
	const int all[] = {0, FE_INEXACT, FE_DIVBYZERO, FE_INVALID | FE_OVERFLOW, FE_ALL_EXCEPT};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		feclearexcept(FE_ALL_EXCEPT);
		feraiseexcept(all[i]);
		const int before = fetestexcept(FE_ALL_EXCEPT);
		differences();
		assert_int_equal(before, fetestexcept(FE_ALL_EXCEPT));
	}
	feclearexcept(FE_ALL_EXCEPT);
}

/* A trap would end this process. (Processors of aarch64 need not have them.) */
static void traps_are_not_sprung(void **unused)
{
	feclearexcept(FE_ALL_EXCEPT);
	if (feenableexcept(FE_ALL_EXCEPT) == -1)
		skip();
	const int different = differences(), enabled = fegetexcept();
	fedisableexcept(FE_ALL_EXCEPT);
	assert_int_equal(0, different);
	assert_int_equal(FE_ALL_EXCEPT, enabled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sums_do_not_depend_on_the_direction),
	    cmocka_unit_test(flags_are_the_programs),
	    cmocka_unit_test(traps_are_not_sprung),
	};

	return cmocka_run_group_tests(tests, compute_wanted, NULL);
}

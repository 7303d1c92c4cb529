/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on the work that others cause. */
#include "pprof/text/throttle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define S UINT64_C(1000000000)

static const struct throttle_rate one_a_second = {.burst = 16, .units = 1, .step_ns = S};
static const struct throttle_rate twenty_a_minute = {.burst = 20, .units = 20, .step_ns = 60 * S};
static const struct throttle_rate twentieth = {.burst = 100, .units = 1, .step_ns = 20};

static unsigned take_all(struct throttle *throttle, const struct throttle_rate *rate, uint64_t now_ns)
{
	unsigned taken = 0;

	while (throttle_take(throttle, rate, now_ns))
		taken++;
	return taken;
}

static void test_an_unused_one_is_full(void **state)
{
	struct throttle soon = {0}, late = {0};

	(void)state;
	assert_int_equal(take_all(&soon, &one_a_second, 1), 16); /* just after the start of the machine */
	assert_int_equal(take_all(&late, &one_a_second, UINT64_MAX - 1), 16);
}

static void test_time_fills_it_up_to_the_burst(void **state)
{
	struct throttle throttle = {0};

	(void)state;
	take_all(&throttle, &one_a_second, 10 * S);
	assert_int_equal(take_all(&throttle, &one_a_second, 11 * S - 1), 0);
	assert_int_equal(take_all(&throttle, &one_a_second, 11 * S), 1);
	assert_int_equal(take_all(&throttle, &one_a_second, 14 * S), 3);
	assert_int_equal(take_all(&throttle, &one_a_second, 1000 * S), 16);
	assert_int_equal(take_all(&throttle, &one_a_second, UINT64_MAX), 16);
}

/* A part of a step is not lost, and not counted twice, however often the throttle is asked. */
static void test_many_questions_change_nothing(void **state)
{
	struct throttle throttle = {0};
	unsigned taken = 0;

	(void)state;
	take_all(&throttle, &one_a_second, S);
	for (uint64_t now_ns = S; now_ns <= 9 * S; now_ns += S / 7)
		taken += take_all(&throttle, &one_a_second, now_ns);
	assert_int_equal(taken, 8 - 1); /* the last question is a little before 9 s */
}

/* With as many units a step as the burst it is a count for each window of time. */
static void test_a_count_for_each_window(void **state)
{
	struct throttle throttle = {0};

	(void)state;
	assert_int_equal(take_all(&throttle, &twenty_a_minute, 5 * S), 20);
	assert_int_equal(take_all(&throttle, &twenty_a_minute, 64 * S), 0);
	assert_int_equal(take_all(&throttle, &twenty_a_minute, 65 * S), 20);
	assert_int_equal(take_all(&throttle, &twenty_a_minute, 124 * S), 0);
}

static void test_a_debt_is_paid_by_time(void **state)
{
	struct throttle throttle = {0};

	(void)state;
	assert_true(throttle_allows(&throttle, &twentieth, 1000));
	throttle_spend(&throttle, 300);
	assert_int_equal(throttle.left, -200);
	assert_false(throttle_allows(&throttle, &twentieth, 1000));
	assert_false(throttle_allows(&throttle, &twentieth, 1000 + 201 * 20 - 1));
	assert_true(throttle_allows(&throttle, &twentieth, 1000 + 201 * 20));
}

static void test_no_number_overflows(void **state)
{
	struct throttle throttle = {0};

	(void)state;
	assert_true(throttle_allows(&throttle, &twentieth, 1000));
	throttle_spend(&throttle, UINT64_MAX);
	throttle_spend(&throttle, UINT64_MAX);
	assert_int_equal(throttle.left, INT64_MIN);
	assert_false(throttle_allows(&throttle, &twentieth, UINT64_MAX));
}

/* A clock that goes back, or a time in the future (what tests use to stop the filling), adds nothing. */
static void test_time_that_goes_back(void **state)
{
	struct throttle throttle = {.left = 1, .filled_ns = UINT64_MAX};

	(void)state;
	assert_true(throttle_take(&throttle, &one_a_second, 1000 * S));
	assert_false(throttle_take(&throttle, &one_a_second, 2000 * S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_unused_one_is_full),
	    cmocka_unit_test(test_time_fills_it_up_to_the_burst),
	    cmocka_unit_test(test_many_questions_change_nothing),
	    cmocka_unit_test(test_a_count_for_each_window),
	    cmocka_unit_test(test_a_debt_is_paid_by_time),
	    cmocka_unit_test(test_no_number_overflows),
	    cmocka_unit_test(test_time_that_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

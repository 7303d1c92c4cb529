/* SPDX-License-Identifier: Apache-2.0 */
/* The slow path of the hooks: what becomes of an interval that ends while no samples are taken, or in a call
 * that fails or is left. */
#include "preload/sampled.h"

#include "preload/attach.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/place_scene.h"

/* For the first event of a process, which is none here. */
bool attach_early(void)
{
	abort();
}

static bool sampled(size_t bytes)
{
	struct region_sample sample;
	return sample_count(bytes) && sampled_decide(bytes, &sample);
}

/* While another thread takes a place, or claims one: the next block is then a sample as any is, and not for
 * certain. */
static void check_interval_begins_anew(enum claim_state meanwhile)
{
	enum { ROUNDS = 20000, BYTES = 1, EXPECTED = ROUNDS / 64 };
	int samples = 0;
	for (int i = 0; i < ROUNDS; i++) {
		sampled(BYTES);
		atomic_store(claim_word, meanwhile);
		assert_false(sampled(1 << 20));
		atomic_store(claim_word, CLAIM_OPEN);
		samples += sampled(BYTES);
	}
	assert_in_range(samples, EXPECTED / 2, EXPECTED * 2);
}

static void who_takes_a_place_leaves_intervals_right(void **unused)
{
	check_interval_begins_anew(CLAIM_TAKING);
}

static void who_claims_a_place_leaves_intervals_right(void **unused)
{
	check_interval_begins_anew(CLAIM_CLAIMING);
}

static void who_is_closed_counts_no_more(void **unused)
{
	sampled(1);
	claim_close();
	assert_false(sampled(1 << 20));
	assert_true(sample_thread.left_bytes == SAMPLE_NEVER);
}

/* Nor for what the real function of an outer call allocates by the hooks. */
static void inner_calls_leave_intervals_right(void **unused)
{
	enum { ROUNDS = 20000, BYTES = 1, EXPECTED = ROUNDS / 64 };
	int samples = 0;
	for (int i = 0; i < ROUNDS; i++) {
		sample_thread =
		    (struct sample_thread){.random = sample_thread.random}; /* the first event too */
		sample_thread.inner = 1;
		assert_false(sampled(i % 2 ? 1 << 20 : 32));
		sample_thread.inner = 0;
		samples += sampled(BYTES);
	}
	assert_in_range(samples, EXPECTED / 2, EXPECTED * 2);
}

/* The call has been left, and will never end. */
static void a_call_that_is_left_costs_one_sample(void **unused)
{
	place_header()->period_bytes = 1;
	sampled(1);
	while (!sampled(1))
		;
	sample_thread.inner = 1;
	assert_false(sampled(1));
	for (int i = 0; i < 100; i++)
		assert_true(sampled(1));
}

/* ---- calls that fail, or are left */

enum { BLOCK_BYTES = 16, PERIOD_BYTES = 64, CALLS = 100000 };

static unsigned int failures; /* before each call that succeeds */
static size_t handler_bytes;  /* that a signal handler allocates in each call */
static jmp_buf *leaves;

static void *next_malloc(size_t bytes)
{
	static unsigned int calls;
	static char block[BLOCK_BYTES];
	struct region_sample sample;
	if (handler_bytes && sample_count(handler_bytes))
		sampled_decide(handler_bytes, &sample);
	if (leaves)
		longjmp(*leaves, 1);
	return calls++ % (failures + 1) == failures ? block : NULL;
}

/* As the hook does, but for what it does without a sample. */
static void *any_malloc(size_t bytes)
{
	if (sample_count(bytes))
		return sampled_malloc(bytes, next_malloc);
	return next_malloc(bytes);
}

static void check_samples(double rounds, uint64_t before)
{
	const double p = -expm1(-(double)BLOCK_BYTES / PERIOD_BYTES), wanted = rounds * p;
	const uint64_t samples = region_place(&region, 0)->allocated.samples - before;
	const double off = ((double)samples - wanted) / sqrt(rounds * p * (1 - p));
	if (off > 5 || off < -5)
		fail_msg("%d samples, wanted %.0f", (int)samples, wanted);
}

static void seed(void)
{
	sampled(1);
	sample_thread.random = 12345;
}

/* Tried until it is had, which is a sample as often as if it had been had at once. */
static void who_fails_first_is_sampled_as_any(void **unused)
{
	seed();
	for (failures = 0; failures < 4; failures++) {
		const uint64_t before = region_place(&region, 0)->allocated.samples;
		for (int i = 0; i < CALLS; i++)
			while (!any_malloc(BLOCK_BYTES))
				;
		check_samples(CALLS, before);
	}
}

/* While the real function runs, intervals go on as ever, whatever becomes of it. */
static void a_handler_in_a_failing_call_does_no_harm(void **unused)
{
	seed();
	failures = 1;
	handler_bytes = 1000;
	for (int i = 0; i < CALLS; i++)
		while (!any_malloc(BLOCK_BYTES))
			;
	check_samples(CALLS, 0);
}

static void a_call_that_is_left_does_no_harm(void **unused)
{
	static jmp_buf back;
	static volatile int left; /* calls */
	seed();
	leaves = &back;
	setjmp(back);
	if (left++ < 1000)
		any_malloc(BLOCK_BYTES);
	leaves = NULL;
	for (int i = 0; i < CALLS; i++)
		any_malloc(BLOCK_BYTES);
	check_samples(CALLS, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    ISOLATED(who_takes_a_place_leaves_intervals_right),
	    ISOLATED(who_claims_a_place_leaves_intervals_right),
	    ISOLATED(who_is_closed_counts_no_more),
	    ISOLATED(inner_calls_leave_intervals_right),
	    ISOLATED(a_call_that_is_left_costs_one_sample),
	    ISOLATED(who_fails_first_is_sampled_as_any),
	    ISOLATED(a_handler_in_a_failing_call_does_no_harm),
	    ISOLATED(a_call_that_is_left_does_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The slow path of the hooks: what becomes of an interval that ends while no samples are taken, or in a call
 * that fails or is left. */
#include "preload/slow_path.h"

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

	return sample_count(bytes) && slow_path_decide(bytes, &sample);
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

/* ---- another period */

/* A thread that is in the middle of an interval, however long, samples at the new period from its next block
 * on. */
static void a_new_period_is_noticed_at_once(void **unused)
{
	for (uint64_t before = 1; before <= UINT64_C(1) << 40; before *= 32) {
		region_set_period(place_header(), before);
		for (int i = 0; i < 3; i++)
			sampled(1);
		region_set_period(place_header(), 1);
		for (int i = 0; i < 100; i++)
			assert_true(sampled(i));
		assert_int_equal(sample_thread.period_bytes, 1);
	}
}

/* Also if it has slept through any number of changes, which uses the same words again. */
static void who_slept_through_changes_is_exact_too(void **unused)
{
	for (uint32_t changes = 0; changes < 3 * REGION_WATCHES; changes++) {
		region_set_period(place_header(), UINT64_C(1) << 40);
		sampled(1);
		for (uint32_t i = 0; i < changes; i++)
			region_set_period(place_header(), (UINT64_C(1) << 39) - i % 2);
		region_set_period(place_header(), 1);
		assert_true(sampled(1));
	}
}

/* Of words that anybody who has the region mapped may have written. */
static void any_word_is_survived(void **unused)
{
	static const uint64_t odd[] = {0, 1, 1000, UINT64_C(1) << 46, UINT64_C(1) << 61,
	    REGION_EXTRA_BYTES - 1, REGION_EXTRA_BYTES + 1, UINT64_C(1) << 63, UINT64_MAX};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		for (uint32_t w = 0; w < REGION_WATCHES; w++)
			atomic_store(&place_header()->extra_bytes[w], odd[i]);
		atomic_store(&place_header()->watch, (uint32_t)odd[i]);
		for (int n = 0; n < 1000; n++)
			sampled((size_t)n);
		const char *at = (const char *)sample_extra(),
		           *words = (const char *)place_header()->extra_bytes;
		assert_true(at >= words && at < words + sizeof(place_header()->extra_bytes));
	}
	region_recount(place_header());
	region_set_period(place_header(), 1);
	assert_true(sampled(1));
}

/* The period is raised under load and lowered again, at any moment: each block has the probability of one of
 * the periods, and its sample carries that. So the sum of the weights is right, and each period's share of it
 * too. Of a thread that is called seldom, most of its intervals end by a change. */
static void changes_are_no_bias(void **unused)
{
	enum { PERIODS = 4, SIZES = 3, CHANGES = 40000 };
	static const uint64_t periods[PERIODS] = {256, 4096, 65536, 1};
	static const size_t sizes[SIZES] = {1, 300, 20000};
	double truth[PERIODS][SIZES] = {{0}}, sum[PERIODS][SIZES] = {{0}}, variance[PERIODS][SIZES] = {{0}};
	uint64_t random = 1;

	for (int c = 0; c < CHANGES; c++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		const uint32_t p = (random >> 40) % PERIODS, blocks = 1 + (random >> 50) % 20;
		region_set_period(place_header(), periods[p]);
		for (uint32_t b = 0; b < blocks; b++) {
			struct region_sample sample;
			const size_t s = (random >> 20 ^ b * 7) % SIZES;

			truth[p][s]++;
			if (!sample_count(sizes[s]) || !slow_path_decide(sizes[s], &sample))
				continue;
			assert_int_equal(sample.period_bytes, periods[p]);
			const double q = periods[p] == 1 ? 1 : -expm1(-(double)sizes[s] / (double)periods[p]);
			sum[p][s] += 1 / q;
		}
	}
	for (int p = 0; p < PERIODS; p++)
		for (int s = 0; s < SIZES; s++) {
			const double q = periods[p] == 1 ? 1 : -expm1(-(double)sizes[s] / (double)periods[p]);

			variance[p][s] = truth[p][s] * (1 - q) / q;
			if (fabs(sum[p][s] - truth[p][s]) > 5.5 * sqrt(variance[p][s]) + 2 / q * (q < 1))
				fail_msg("period %d, size %zu: wanted %g +- %g, got %g", (int)periods[p],
				    sizes[s], truth[p][s], sqrt(variance[p][s]), sum[p][s]);
		}
}

/* One that was forked in the middle of its parent's interval, and whose period changes later. */
static void a_forked_child_notices_too(void **unused)
{
	region_set_period(place_header(), UINT64_C(1) << 40);
	sampled(1);
	int ends[2], status;
	char byte;
	assert_int_equal(pipe(ends), 0);
	const pid_t child = fork();
	if (child == 0) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) != 0)
			_exit(2);
		_exit(sampled(1) ? 0 : 1);
	}
	region_set_period(place_header(), 1);
	close(ends[0]);
	close(ends[1]);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
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
		slow_path_decide(handler_bytes, &sample);
	if (leaves)
		longjmp(*leaves, 1);
	return calls++ % (failures + 1) == failures ? block : NULL;
}

/* As the hook does, but for what it does without a sample. */
static void *any_malloc(size_t bytes)
{
	if (sample_count(bytes))
		return slow_path_malloc(bytes, next_malloc);
	return next_malloc(bytes);
}

static void check_samples(double rounds, uint64_t before)
{
	const double p = -expm1(-(double)BLOCK_BYTES / PERIOD_BYTES), wanted = rounds * p;
	const uint64_t samples = region_place(&run_region, 0)->allocated.samples - before;
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
		const uint64_t before = region_place(&run_region, 0)->allocated.samples;

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
	    ISOLATED(a_new_period_is_noticed_at_once),
	    ISOLATED(who_slept_through_changes_is_exact_too),
	    ISOLATED(any_word_is_survived),
	    ISOLATED(changes_are_no_bias),
	    ISOLATED(a_forked_child_notices_too),
	    UNWIPED(a_forked_child_notices_too),
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The slow path of the hooks: what becomes of an interval that ends while no samples are taken. */
#include "preload/sampled.h"

#include "preload/attach.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    ISOLATED(who_takes_a_place_leaves_intervals_right),
	    ISOLATED(who_claims_a_place_leaves_intervals_right),
	    ISOLATED(who_is_closed_counts_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

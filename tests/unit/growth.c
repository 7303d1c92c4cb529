/* SPDX-License-Identifier: Apache-2.0 */
/* At which function a leak is named whose stacks are headed by several. */
#include "pprof/analysis/growth.h"

#include "pprof/analysis/row_label.h"
#include "pprof/model/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POINTS = 6, HEADS = 5, BLOCK_BYTES = 64 << 10, PERIOD_BYTES = 16 << 10, OUTWARDS_MOST = 3 };

static uint32_t location_of(struct profile *p, const char *name, uint64_t address)
{
	const struct profile_function function = {.name = name};
	const struct profile_line line = {.function = profile_add_function(p, &function)};
	const struct profile_location location = {.address = address, .lines = &line, .line_count = 1};

	return profile_add_location(p, &location);
}

/* Five functions that keep a block each between two snapshots, too little to be sure of any. The outermost
 * caller has something else, which does not grow. */
static struct profile *profile_at(int point, const char *const callers[OUTWARDS_MOST])
{
	static const char *const heads[HEADS] = {"parse", "read", "copy", "merge", "index"};
	struct profile *p = profile_new();
	const int64_t bytes = (int64_t)point * BLOCK_BYTES;
	const int64_t values[4] = {point, bytes, point, bytes};
	const int64_t constant[4] = {1, BLOCK_BYTES, 1, BLOCK_BYTES};

	profile_add_sample_type(p, "alloc_objects", "count");
	profile_add_sample_type(p, "alloc_space", "bytes");
	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_period(p, "space", "bytes", PERIOD_BYTES);
	for (uint64_t head = 0; head < HEADS; head++) {
		uint32_t stack[1 + OUTWARDS_MOST] = {location_of(p, heads[head], 1 + head)}, depth = 1;

		for (; depth <= OUTWARDS_MOST && callers[depth - 1]; depth++)
			stack[depth] = location_of(p, callers[depth - 1], 16 + depth);
		profile_add_sample(p, stack, depth, values, NULL, 0);
		if (depth > 1) {
			stack[0] = location_of(p, "cache", 32);
			profile_add_sample(
			    p, (const uint32_t[]){stack[0], stack[depth - 1]}, 2, constant, NULL, 0);
		}
	}
	return p;
}

/* The function that is said to grow; NULL: none, though all of them together grow. callers: of each head, the
 * innermost first, the last NULL. */
static void assert_named(const char *name, const char *const callers[OUTWARDS_MOST])
{
	static const int64_t minute_ns = INT64_C(60) * 1000000000;
	static const struct traces_options plain;
	int64_t times_ns[POINTS];
	struct growth growth;
	struct traces t;

	for (int point = 0; point < POINTS; point++) {
		struct profile *p = profile_at(point, callers);

		times_ns[point] = (point + 1) * minute_ns;
		if (!point)
			assert_int_equal(traces_init(&t, &plain, p, POINTS), 0);
		assert_int_equal(traces_add(&t, p, (size_t)point), 0);
		profile_free(p);
	}
	assert_int_equal(row_label_choose(&t), 0);
	assert_int_equal(growth_make(&growth, &t, 0, times_ns, POINTS), 0);
	assert_int_equal(growth.total.trend.kind, TREND_GROWS);
	assert_int_equal(growth.growing_count, name ? 1 : 0);
	if (name) {
		assert_true(growth.rows[0].is_caller);
		assert_string_equal(t.frames.rows[growth.rows[0].frame].name, name);
	}
	growth_fini(&growth);
	traces_fini(&t);
}

static void a_caller_of_several_is_named(void **state)
{
	(void)state;
	assert_named("serve", (const char *const[OUTWARDS_MOST]){"serve", "main"});
}

static void brackets_are_no_caller(void **state)
{
	(void)state;
	assert_named("serve", (const char *const[OUTWARDS_MOST]){"[no unwind rows]", "serve", "main"});
	assert_named(NULL, (const char *const[OUTWARDS_MOST]){"[no unwind rows]"});
}

static void an_address_is_asked_last(void **state)
{
	(void)state;
	assert_named("serve", (const char *const[OUTWARDS_MOST]){"server+0x3a10", "serve", "main"});
	assert_named("server+0x3a10", (const char *const[OUTWARDS_MOST]){"server+0x3a10"});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_caller_of_several_is_named),
	    cmocka_unit_test(brackets_are_no_caller),
	    cmocka_unit_test(an_address_is_asked_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Who may still add to the books: hogs get equal shares, a newcomer finds as much. */
#include "sampler/target/memory_bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MIB = 1 << 20, HOGS_MAX = 16 };

static void hogs_share_and_leave_a_share(void **state)
{
	(void)state;
	for (unsigned int hogs = 1; hogs <= HOGS_MAX; hogs++) {
		struct memory_bound bound = {.max_bytes = 64 * MIB};
		uint64_t own[HOGS_MAX + 1] = {0}, share = bound.max_bytes / (hogs + 1), step = 1024;
		bool grown = true;
		while (grown) {
			grown = false;
			for (unsigned int i = 0; i < hogs; i++)
				if (memory_bound_allows(&bound, own[i])) {
					memory_bound_note(&bound, &own[i], own[i] + step);
					grown = true;
				}
			assert_in_range(bound.held_bytes, 0, bound.max_bytes);
		}
		for (unsigned int i = 0; i < hogs; i++)
			assert_in_range(own[i], share - hogs * step, share + step);
		assert_in_range(bound.held_bytes, 0, bound.max_bytes - share + hogs * step);
		assert_true(memory_bound_allows(&bound, own[hogs]));
		/* what goes is there for others again */
		memory_bound_note(&bound, &own[0], 0);
		assert_true(hogs == 1 || memory_bound_allows(&bound, own[1]));
	}
}

static void the_sum_stays_below_where_tables_double(void **state)
{
	(void)state;
	struct memory_bound bound = {.max_bytes = 64 * MIB};
	uint64_t own[8] = {0};
	for (int round = 0; round < 64; round++)
		for (int i = 0; i < 8; i++)
			if (memory_bound_allows(&bound, own[i]))
				memory_bound_note(&bound, &own[i], own[i] ? 2 * own[i] : 1000);
	assert_true(bound.held_bytes < bound.max_bytes);
	bound.held_bytes = 2 * bound.max_bytes;
	assert_false(memory_bound_allows(&bound, 0));
}

static void from_the_limit_or_the_machine(void **state)
{
	(void)state;
	assert_int_equal(memory_bound_bytes(100 * MIB), 50 * MIB);
	assert_in_range(memory_bound_bytes(0), 1, UINT64_C(1) << 30);
	struct memory_bound none = {.held_bytes = UINT64_C(1) << 60};
	assert_true(memory_bound_allows(&none, UINT64_C(1) << 60));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hogs_share_and_leave_a_share),
	    cmocka_unit_test(the_sum_stays_below_where_tables_double),
	    cmocka_unit_test(from_the_limit_or_the_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

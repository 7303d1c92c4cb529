/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/array.h"

#include <stdbool.h>

struct item {
	bool other;
	uint64_t key;
};

static void bounds_are_where_the_definition_says(void **state)
{
	static const struct item items[] = {{true, 1}, {true, 3}, {true, 3}, {true, 7}, {true, UINT64_MAX}};
	static const uint64_t asked[] = {0, 1, 2, 3, 4, 7, 8, UINT64_MAX - 1, UINT64_MAX};

	for (size_t count = 0; count <= 5; count++) {
		for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
			size_t below = 0, not_above = 0;

			for (size_t k = 0; k < count; k++) {
				below += items[k].key < asked[i];
				not_above += items[k].key <= asked[i];
			}
			assert_int_equal(ARRAY_LOWER_BOUND(items, count, key, asked[i]), below);
			assert_int_equal(ARRAY_UPPER_BOUND(items, count, key, asked[i]), not_above);
		}
	}
	assert_int_equal(array_lower_bound(NULL, 0, sizeof(uint64_t), 0, 8), 0);
}

static void growing_keeps_what_is_there(void **state)
{
	uint64_t *items = NULL;
	size_t capacity = 0;

	for (size_t i = 0; i < 10000; i++) {
		assert_int_equal(array_reserve(&items, &capacity, i + 1, sizeof(*items)), 0);
		assert_true(capacity > i && capacity < 16 + 2 * i + 2);
		items[i] = i;
	}
	for (size_t i = 0; i < 10000; i++)
		assert_int_equal(items[i], i);
	assert_int_equal(array_reserve(&items, &capacity, SIZE_MAX / 4, sizeof(*items)), -ENOMEM);
	assert_int_equal(items[9999], 9999);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bounds_are_where_the_definition_says),
	    cmocka_unit_test(growing_keeps_what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* Items by key, against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/intake/table.h"

#include <stdbool.h>

enum { ITEMS = 2000, KEYS = 300, ROUNDS = 40000 };

static bool is_in(const struct table *table, uint64_t key, const void *item)
{
	size_t cursor = 0;
	unsigned int times = 0;

	for (const void *found; (found = table_next(table, key, &cursor));)
		times += found == item;
	assert_true(times <= 1);
	return times == 1;
}

/* Several items share a key, and come and go in any order. */
static void finds_what_was_added_and_not_removed(void **state)
{
	static char items[ITEMS];
	static bool present[ITEMS];
	struct table table = {0};
	uint32_t random = 1;
	size_t count = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t n = (random >> 8) % ITEMS;
		if (present[n])
			table_remove(&table, n % KEYS, &items[n]);
		else
			assert_int_equal(table_add(&table, n % KEYS, &items[n]), 0);
		present[n] = !present[n];
		count += present[n] ? 1 : (size_t)-1;
		assert_int_equal(table.count, count);
		assert_int_equal(is_in(&table, n % KEYS, &items[n]), present[n]);
	}
	for (size_t n = 0; n < ITEMS; n++)
		assert_int_equal(is_in(&table, n % KEYS, &items[n]), present[n]);
	table_remove(&table, KEYS, items); /* is not there */
	assert_int_equal(table.count, count);
	table_fini(&table);
}

/* Each item is visited once, and none that is added meanwhile. Where other items are removed, the loop
 * ends all the same. */
static void a_loop_may_add_and_remove(void **state)
{
	char items[6], late;
	struct table table = {0};
	size_t visits = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(items); i++)
		assert_int_equal(table_add(&table, 7, &items[i]), 0);
	table_each (char, item, &table) {
		visits++;
		if (item == &items[5])
			assert_int_equal(table_add(&table, 7, &late), 0);
		if (item == &items[4]) {
			table_remove(&table, 7, item);
			continue;
		}
	}
	assert_int_equal(visits, sizeof(items));
	assert_int_equal(table.count, sizeof(items)); /* one less, and the late one */
	visits = 0;
	table_each (char, item, &table) {
		if (visits++ == 1)
			break;
	}
	assert_int_equal(visits, 2);
	visits = 0;
	table_each (char, item, &table) {
		visits++;
		for (size_t i = 0; i < sizeof(items); i++)
			table_remove(&table, 7, &items[i]);
	}
	assert_int_equal(table.count, 1);
	assert_int_equal(visits, 2); /* the first, which removes all others, and the late one */
	table_fini(&table);
	table_each (char, item, &table)
		assert_null(item);
}

static void two_tables_know_nothing_of_each_other(void **state)
{
	struct table one = {0}, other = {0};
	size_t cursor = 0;
	int item;

	(void)state;
	assert_int_equal(table_add(&one, 1, &item), 0);
	assert_null(table_next(&other, 1, &cursor));
	cursor = 0;
	assert_ptr_equal(table_next(&one, 1, &cursor), &item);
	assert_null(table_next(&one, 1, &cursor));
	table_fini(&one);
	table_fini(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(finds_what_was_added_and_not_removed),
	    cmocka_unit_test(a_loop_may_add_and_remove),
	    cmocka_unit_test(two_tables_know_nothing_of_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

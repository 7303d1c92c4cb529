/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/inject/foreign_preload.h"

#include <stdio.h>
#include <string.h>

/* Hides in an environment of this entry and others: is it hidden as `hidden`, or not at all if that is NULL?
 * And is all as it was after it was taken back? */
static void check(const char *entry, const char *hidden)
{
	char first[] = "A=LD_PRELOAD=/x.so", changed[128], last[] = "LD_PRELOADED=/x.so";
	char *environment[] = {first, changed, last, NULL};

	snprintf(changed, sizeof(changed), "%s", entry);
	assert_int_equal(foreign_preload_hide(environment), hidden != NULL);
	assert_string_equal(changed, hidden ? hidden : entry);
	assert_int_equal(foreign_preload_restore(environment), hidden != NULL);
	assert_string_equal(changed, entry);
	assert_string_equal(first, "A=LD_PRELOAD=/x.so");
	assert_string_equal(last, "LD_PRELOADED=/x.so");
}

static void what_is_foreign_is_hidden(void **state)
{
	check("LD_PRELOAD=/x.so", "LD.PRELOAD=/x.so");
	check("LD_PRELOAD=libx.so", "LD.PRELOAD=libx.so");
	check("LD_PRELOAD=: /x.so:", "LD.PRELOAD=: /x.so:");
	check("LD_PRELOAD=/usr/lib/libheaptap.so:/x.so", "LD.PRELOAD=/usr/lib/libheaptap.so:/x.so");
	check("LD_PRELOAD=/x.so libheaptap.so", "LD.PRELOAD=/x.so libheaptap.so");
	check("LD_PRELOAD=/usr/lib/notlibheaptap.so", "LD.PRELOAD=/usr/lib/notlibheaptap.so");
	check("LD_PRELOAD=/libheaptap.so/x.so", "LD.PRELOAD=/libheaptap.so/x.so");
	check("LD_AUDIT=/x.so", "LD.AUDIT=/x.so");
}

static void ours_and_nothing_stay(void **state)
{
	check("LD_PRELOAD=", NULL);
	check("LD_PRELOAD= ::", NULL);
	check("LD_PRELOAD=libheaptap.so", NULL);
	check("LD_PRELOAD=/usr/lib/libheaptap.so::/opt/libheaptap.so ", NULL);
	check("LD_AUDIT=", NULL);
	check("LD_LIBRARY_PATH=/x", NULL);
	check("LD_PRELOAD", NULL);
}

static void all_of_a_name_are_hidden(void **state)
{
	char first[] = "LD_PRELOAD=/x.so", second[] = "LD_PRELOAD=libheaptap.so", third[] = "LD_AUDIT=";
	char *environment[] = {first, second, third, NULL};

	assert_true(foreign_preload_hide(environment));
	assert_string_equal(first, "LD.PRELOAD=/x.so");
	assert_string_equal(second, "LD.PRELOAD=libheaptap.so");
	assert_string_equal(third, "LD.AUDIT=");
	assert_false(foreign_preload_hide(environment));
	assert_true(foreign_preload_restore(environment));
	assert_string_equal(second, "LD_PRELOAD=libheaptap.so");
}

/* Else they would be LD_PRELOAD when ours are given back. */
static void with_names_of_others_nothing_is_hidden(void **state)
{
	static const char *const others[] = {"LD.PRELOAD=/y.so", "LD.AUDIT="};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		char first[] = "LD_PRELOAD=/x.so", second[32];
		char *environment[] = {first, second, NULL};

		snprintf(second, sizeof(second), "%s", others[i]);
		assert_false(foreign_preload_hide(environment));
		assert_string_equal(first, "LD_PRELOAD=/x.so");
		assert_string_equal(second, others[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_foreign_is_hidden),
	    cmocka_unit_test(ours_and_nothing_stay),
	    cmocka_unit_test(all_of_a_name_are_hidden),
	    cmocka_unit_test(with_names_of_others_nothing_is_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

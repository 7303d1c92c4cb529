/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of files that were mapped after the start are taught only if they can be believed. */
#include "tests/unit/walked_scene.h"

static void later_files_are_the_images_own(void **state)
{
	(void)state;
	learn(1, LEARNED_NS); /* a forked child: it may have mapped something else there */
	assert_int_equal(rows(area()->later, WALK_LATER_ROWS), 0);
	assert_int_equal(area()->numbers.given, 0);
	learn(0, LEARNED_NS);
	assert_in_range(rows(area()->later, WALK_LATER_ROWS), 1, FRAMES);
	assert_int_equal(rows(area()->rows, WALK_ROWS), 0);
}

/* Attached to: what it has mapped by dlopen may be unmapped without our knowledge. */
static void of_an_attached_process_only_start_files_are_learned(void **state)
{
	(void)state;
	region_header(run->region)->attached_after_ns = 1;
	learn(0, LEARNED_NS);
	assert_int_equal(rows(area()->later, WALK_LATER_ROWS), 0);
	assert_int_equal(rows(area()->rows, WALK_ROWS), 0);
	walked_free(run);
	list_start_files();
	region_header(run->region)->start_files = UINT32_MAX; /* and it may write anything there */
	learn(0, LEARNED_NS);
	assert_int_equal(rows(area()->later, WALK_LATER_ROWS), 0);
	assert_in_range(rows(area()->rows, WALK_ROWS), 1, FRAMES);
}

static void nothing_is_learned_while_a_file_is_unmapped(void **state)
{
	(void)state;
	atomic_store(&area()->generation, 1); /* dlclose has begun */
	learn(0, LEARNED_NS);
	assert_int_equal(rows(area()->later, WALK_LATER_ROWS), 0);
}

/* What was dumped before the maps were read again may be of what was mapped there before. */
static void old_dumps_teach_nothing_of_later_files(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	atomic_store(&area()->generation, 1);
	walked_drain(run, true);
	assert_int_equal(area()->later_generation, 1);
	assert_int_equal(rows(area()->later, WALK_LATER_ROWS), 0);
	learn(0, LEARNED_NS);
	assert_int_equal(rows(area()->later, WALK_LATER_ROWS), 0);
	learn(0, UINT64_MAX);
	assert_in_range(rows(area()->later, WALK_LATER_ROWS), 1, FRAMES);
}

static void later_files_wait_for_the_maps(void **state)
{
	struct target *target = &process[0]->target;

	(void)state;
	learn(0, LEARNED_NS);
	atomic_store(&area()->generation, 1);
	target->reading.work =
	    (struct throttle){.left = -1, .filled_ns = UINT64_MAX}; /* time does not fill it */
	walked_drain(run, false);
	assert_int_equal(area()->later_generation, 0);
	walked_drain(run, true); /* nothing is read */
	assert_int_equal(area()->later_generation, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(later_files_are_the_images_own, begin, end),
	    cmocka_unit_test_setup_teardown(of_an_attached_process_only_start_files_are_learned, begin, end),
	    cmocka_unit_test_setup_teardown(nothing_is_learned_while_a_file_is_unmapped, begin, end),
	    cmocka_unit_test_setup_teardown(old_dumps_teach_nothing_of_later_files, begin, end),
	    cmocka_unit_test_setup_teardown(later_files_wait_for_the_maps, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

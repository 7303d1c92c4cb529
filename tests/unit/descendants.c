/* SPDX-License-Identifier: Apache-2.0 */
/* Whose children the processes of a machine are, also where the list is wrong. */
#include "sampler/linux/descendants.h"
#include "pprof/table/array.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void nearest_first_and_no_root(void **state)
{
	/* 10 is a master with a worker that has forked; 20 is another; 30 and 31 are nobody's. */
	struct descendants_pair pairs[] = {
	    {12, 11}, {20, 1}, {21, 20}, {11, 10}, {10, 1}, {13, 10}, {30, 1}, {31, 30}, {1, 0}};
	const pid_t roots[] = {10, 20};
	struct descendant found[8];

	assert_int_equal(
	    descendants_of(pairs, ARRAY_COUNT(pairs), roots, 2, 0, found, ARRAY_COUNT(found)), 4);
	assert_int_equal(found[0].pid, 11);
	assert_int_equal(found[1].pid, 13);
	assert_int_equal(found[2].pid, 21);
	assert_int_equal(found[2].root, 1);
	assert_int_equal(found[2].parent, 20);
	assert_int_equal(found[3].pid, 12);
	assert_int_equal(found[3].root, 0);
	assert_int_equal(found[3].parent, 11);
}

static void a_root_below_a_root_is_a_root(void **state)
{
	struct descendants_pair pairs[] = {{11, 10}, {12, 11}, {13, 12}, {10, 1}};
	const pid_t roots[] = {10, 12};
	struct descendant found[8];

	assert_int_equal(
	    descendants_of(pairs, ARRAY_COUNT(pairs), roots, 2, 0, found, ARRAY_COUNT(found)), 2);
	assert_int_equal(found[0].pid, 11);
	assert_int_equal(found[1].pid, 13);
	assert_int_equal(found[1].root, 1);
}

static void without_one_and_its_children(void **state)
{
	struct descendants_pair pairs[] = {{11, 10}, {12, 11}, {13, 10}};
	const pid_t root = 10;
	struct descendant found[8];

	assert_int_equal(
	    descendants_of(pairs, ARRAY_COUNT(pairs), &root, 1, 11, found, ARRAY_COUNT(found)), 1);
	assert_int_equal(found[0].pid, 13);
}

static void more_than_there_is_room_for(void **state)
{
	struct descendants_pair pairs[100];
	const pid_t root = 10;
	struct descendant found[3] = {{.pid = 0}};

	for (int i = 0; i < 100; i++)
		pairs[i] = (struct descendants_pair){1000 + i, 10};
	assert_int_equal(descendants_of(pairs, 100, &root, 1, 0, found, 2), 100);
	assert_true(found[1].pid >= 1000);
	assert_int_equal(found[2].pid, 0);
}

/* Parents that are each other's children, themselves, or nobody: read while pids were used again. */
static void circles_end(void **state)
{
	struct descendants_pair pairs[] = {
	    {10, 12}, {11, 10}, {12, 11}, {13, 13}, {14, 14}, {0, 10}, {-5, 10}, {11, 12}};
	const pid_t roots[] = {10, 14};
	struct descendant found[8];
	const size_t count =
	    descendants_of(pairs, ARRAY_COUNT(pairs), roots, 2, 0, found, ARRAY_COUNT(found));

	assert_true(count >= 2 && count <= 3);
	assert_int_equal(descendants_of(pairs, 0, roots, 2, 0, found, ARRAY_COUNT(found)), 0);
}

static void living_children(void **state)
{
	struct descendant found[64];
	const pid_t self = getpid(), child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	/* We are no child of ourselves, but have one; our parent has us, who are left out. */
	assert_int_equal(descendants_find(&self, 1, found, 64), 1);
	assert_int_equal(found[0].pid, child);
	const pid_t parent = getppid();
	const size_t count = descendants_find(&parent, 1, found, 64);
	for (size_t i = 0; i < count && i < 64; i++)
		assert_true(found[i].pid != self && found[i].pid != child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(descendants_find(&self, 1, found, 64), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nearest_first_and_no_root),
	    cmocka_unit_test(a_root_below_a_root_is_a_root),
	    cmocka_unit_test(without_one_and_its_children),
	    cmocka_unit_test(more_than_there_is_room_for),
	    cmocka_unit_test(circles_end),
	    cmocka_unit_test(living_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Who has inherited what, while threads create threads and counters are being put on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/perf/lineage.h"

static void created(struct lineage *l, pid_t tid, pid_t parent, uint64_t time_ns)
{
	const struct lineage_fork fork = {.tid = tid, .parent_tid = parent, .time_ns = time_ns};

	assert_int_equal(lineage_fork(l, &fork), 0);
}

static void settled_at(struct lineage *l, pid_t tid, uint64_t time_ns)
{
	assert_int_equal(lineage_add(l, tid), 0);
	lineage_settle(l, tid, time_ns);
}

static void a_creation_after_settling_is_certain(void **state)
{
	struct lineage l = {0};

	settled_at(&l, 10, 100);
	created(&l, 11, 10, 101);
	created(&l, 12, 11, 102);
	assert_int_equal(lineage_doubtful(&l), 0);
	assert_true(lineage_knows(&l, 10));
	assert_true(lineage_knows(&l, 11));
	assert_true(lineage_knows(&l, 12));
	assert_false(lineage_knows(&l, 13));
	lineage_free(&l);
	assert_false(lineage_knows(&l, 10));
}

/* It may have begun before counters were on its creator. What it has created itself has what it has. */
static void one_before_settling_is_doubtful(void **state)
{
	struct lineage l = {0};

	settled_at(&l, 20, 50);
	assert_int_equal(lineage_add(&l, 10), 0);
	created(&l, 11, 10, 90);
	created(&l, 12, 11, 120);
	created(&l, 21, 20, 121);
	assert_int_equal(lineage_doubtful(&l), 10);
	lineage_settle(&l, 10, 100);
	lineage_settle(&l, 10, 80); /* the first time counts */
	assert_int_equal(lineage_doubtful(&l), 10);
	lineage_forget(&l, 10);
	assert_int_equal(lineage_doubtful(&l), 0);
	assert_false(lineage_knows(&l, 10));
	assert_false(lineage_knows(&l, 11));
	assert_false(lineage_knows(&l, 12));
	assert_true(lineage_knows(&l, 20));
	assert_true(lineage_knows(&l, 21));
	lineage_free(&l);
}

/* A thread was listed, and got counters, before the FORK was read by which it had some already. */
static void counted_twice(void **state)
{
	struct lineage l = {0};

	settled_at(&l, 10, 50);
	settled_at(&l, 11, 70);
	created(&l, 11, 10, 60);
	created(&l, 12, 11, 80);
	assert_int_equal(lineage_doubtful(&l), 0);
	assert_int_equal(lineage_take_double(&l), 11);
	assert_int_equal(lineage_take_double(&l), 0);
	assert_true(lineage_knows(&l, 11));
	assert_true(lineage_knows(&l, 12));
	lineage_free(&l);
}

/* What has counters of ours keeps them when those are closed that it may have inherited. */
static void forgetting_ends_at_who_has_its_own(void **state)
{
	struct lineage l = {0};

	assert_int_equal(lineage_add(&l, 10), 0);
	settled_at(&l, 11, 70);
	created(&l, 11, 10, 60);
	created(&l, 12, 11, 80);
	assert_int_equal(lineage_doubtful(&l), 10);
	lineage_forget(&l, 10);
	assert_int_equal(lineage_take_double(&l), 0);
	assert_true(lineage_knows(&l, 11));
	assert_true(lineage_knows(&l, 12));
	lineage_free(&l);
}

/* It was listed, and had ended when its counters were half open: what it created meanwhile is not ours. */
static void who_has_ended_is_not_asked_again(void **state)
{
	struct lineage l = {0};
	size_t at = 0;

	assert_int_equal(lineage_end(&l, 10), 0);
	created(&l, 11, 10, 60);
	assert_int_equal(lineage_unsettled(&l, &at), 0);
	assert_int_equal(lineage_doubtful(&l), 0);
	lineage_forget(&l, 10);
	assert_true(lineage_knows(&l, 10));
	assert_false(lineage_knows(&l, 11));
	lineage_free(&l);
}

static void unsettled_ones_are_listed(void **state)
{
	struct lineage l = {0};
	size_t at = 0;

	assert_int_equal(lineage_add(&l, 12), 0);
	assert_int_equal(lineage_add(&l, 10), 0);
	settled_at(&l, 11, 1);
	assert_int_equal(lineage_unsettled(&l, &at), 10);
	assert_int_equal(lineage_unsettled(&l, &at), 12);
	assert_int_equal(lineage_unsettled(&l, &at), 0);
	lineage_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_creation_after_settling_is_certain),
	    cmocka_unit_test(one_before_settling_is_doubtful),
	    cmocka_unit_test(counted_twice),
	    cmocka_unit_test(forgetting_ends_at_who_has_its_own),
	    cmocka_unit_test(who_has_ended_is_not_asked_again),
	    cmocka_unit_test(unsettled_ones_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

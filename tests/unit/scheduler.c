/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks for a snapshot of a target, and is answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/scheduler_desk.h"

static void who_asks_is_answered(void **state)
{
	struct desk desk;

	(void)state;
	open_desk(&desk, getpid());
	assert_int_equal(scheduler_ask(desk.source.scheduler, getpid() + 1, 7), 0);
	assert_int_equal(scheduler_ask(desk.source.scheduler, getpid(), 7), 1);
	scheduler_tend(desk.source.scheduler, SECOND);
	assert_int_equal(desk.tries, 1);
	assert_string_equal(desk.names[0], "0001");
	assert_int_equal(desk.answers, 0);
	reap(&desk);
	assert_int_equal(desk.answers, 1);
	assert_int_equal(desk.asker, 7);
	assert_int_equal(desk.answer, 0);
	close_desk(&desk);
	assert_string_equal(desk.names[1], "exit");
}

/* All that the control socket serves at a time can wait for the same snapshot. */
static void many_ask_while_one_is_written(void **state)
{
	enum { ASKERS = 12 };
	struct desk desk;

	(void)state;
	open_desk(&desk, getpid());
	assert_int_equal(scheduler_ask(desk.source.scheduler, getpid(), 100), 1);
	scheduler_tend(desk.source.scheduler, SECOND);
	for (uint64_t asker = 1; asker <= ASKERS; asker++)
		assert_int_equal(scheduler_ask(desk.source.scheduler, getpid(), asker), 1);
	reap(&desk);
	assert_int_equal(desk.answers, 1);
	scheduler_tend(desk.source.scheduler, 2 * (uint64_t)SECOND);
	reap(&desk);
	assert_int_equal(desk.tries, 2);
	assert_int_equal(desk.answers, 1 + ASKERS);
	close_desk(&desk);
}

/* Nor do those that have hung up keep their places. */
static void who_has_gone_is_not_waited_for(void **state)
{
	struct desk desk;

	(void)state;
	open_desk(&desk, getpid());
	assert_int_equal(scheduler_ask(desk.source.scheduler, getpid(), 100), 1);
	scheduler_tend(desk.source.scheduler, SECOND);
	for (uint64_t asker = 1; asker <= 3 * SNAPSHOT_ASKERS; asker++) {
		assert_int_equal(scheduler_ask(desk.source.scheduler, getpid(), asker), 1);
		if (asker != 5)
			scheduler_forget(desk.source.scheduler, asker);
	}
	reap(&desk);
	scheduler_tend(desk.source.scheduler, 2 * (uint64_t)SECOND);
	reap(&desk);
	assert_int_equal(desk.tries, 2);
	assert_int_equal(desk.answers, 2);
	assert_int_equal(desk.asker, 5);
	close_desk(&desk);
}

/* And not tried again at every look. */
static void what_cannot_be_taken_is_answered_and_dropped(void **state)
{
	struct desk desk;

	(void)state;
	open_desk(&desk, getpid());
	desk.error = -ENAMETOOLONG;
	assert_int_equal(scheduler_ask_all(desk.source.scheduler, "a test", 9), 1);
	for (uint64_t i = 1; i <= 10; i++)
		scheduler_tend(desk.source.scheduler, i * SECOND);
	assert_int_equal(desk.tries, 1);
	assert_int_equal(desk.answers, 1);
	assert_int_equal(desk.asker, 9);
	assert_int_equal(desk.answer, -ENAMETOOLONG);
	desk.error = 0;
	assert_int_equal(scheduler_ask(desk.source.scheduler, getpid(), 10), 1);
	scheduler_tend(desk.source.scheduler, 11 * (uint64_t)SECOND);
	assert_string_equal(desk.names[1], "0001"); /* no number is left out */
	reap(&desk);
	assert_int_equal(desk.answer, 0);
	close_desk(&desk);
}

typedef uint32_t ask_one(struct scheduler *scheduler, pid_t pid, uint64_t asker);

static void three_ask(struct desk *desk, ask_one *ask)
{
	desk->goes = 1;
	memset(desk->told, 0, sizeof(desk->told));
	for (uint64_t asker = 1; asker <= 3; asker++)
		assert_int_equal(ask(desk->source.scheduler, getpid(), asker), 1);
}

static void each_was_told_once(const struct desk *desk, int error)
{
	for (int asker = 1; asker <= 3; asker++)
		assert_int_equal(desk->told[asker], 1);
	assert_int_equal(desk->answer, error);
}

/* The first to be told has closed its socket, which is found out then: all others are told all the same. */
static void who_goes_when_told_keeps_it_from_no_other(void **state)
{
	static ask_one *const asks[] = {scheduler_ask, scheduler_ask_memory};
	struct desk desk;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_desk(&desk, getpid());
		desk.error = -ENOSPC;
		three_ask(&desk, asks[i]);
		scheduler_tend(desk.source.scheduler, SECOND);
		each_was_told_once(&desk, -ENOSPC);
		desk.error = 0;
		desk.empty = true;
		three_ask(&desk, asks[i]);
		close_desk(&desk);
		each_was_told_once(&desk, -ESRCH);
		assert_int_equal(desk.answers, 6);
	}
}

/* It has nothing to write, so nothing is taken at its end either. */
static void who_asks_for_what_ends_is_answered(void **state)
{
	struct desk desk;

	(void)state;
	open_desk(&desk, getpid());
	desk.empty = true;
	assert_int_equal(scheduler_ask(desk.source.scheduler, getpid(), 7), 1);
	close_desk(&desk);
	assert_int_equal(desk.tries, 0);
	assert_int_equal(desk.dropped[SNAPSHOT_DROP_FEW], 1); /* and counted */
	assert_int_equal(desk.answers, 1);
	assert_int_equal(desk.asker, 7);
	assert_int_equal(desk.answer, -ESRCH);
}

/* And ends before anybody has looked: of one with few samples there would be nothing at all. */
static void who_asks_and_ends_has_a_snapshot(void **state)
{
	struct desk desk;

	(void)state;
	open_desk(&desk, getpid());
	desk.asks = desk.empty = true;
	desk.target.closed = true;
	const struct target_listener listener = scheduler_listener(&desk.source);
	listener.closed(listener.context, &desk.target);
	assert_int_equal(desk.tries, 2);
	assert_string_equal(desk.names[0], "0001");
	assert_string_equal(desk.names[1], "exit");
	reap(&desk);
	assert_false(scheduler_settled(desk.source.scheduler));
	reap(&desk);
	assert_true(scheduler_settled(desk.source.scheduler));
	assert_int_equal(desk.released, 1);
	target_fini(&desk.target);
	scheduler_free(desk.source.scheduler);
}
int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who_asks_is_answered),
	    cmocka_unit_test(many_ask_while_one_is_written),
	    cmocka_unit_test(who_has_gone_is_not_waited_for),
	    cmocka_unit_test(what_cannot_be_taken_is_answered_and_dropped),
	    cmocka_unit_test(who_goes_when_told_keeps_it_from_no_other),
	    cmocka_unit_test(who_asks_for_what_ends_is_answered),
	    cmocka_unit_test(who_asks_and_ends_has_a_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

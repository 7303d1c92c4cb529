/* SPDX-License-Identifier: Apache-2.0 */
/* When a snapshot is taken, and whose comes first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/scheduler_desk.h"

/* What is due while the writer is busy is taken when it is not: nobody looks again and again until then. */
static void a_busy_writer_is_not_asked_all_the_time(void **state)
{
	enum { DESKS = WRITER_CHILDREN + 1 };
	struct desk desks[DESKS];
	struct scheduler *scheduler;
	unsigned int tries = 0;

	(void)state;
	assert_int_equal(pipe(gate), 0);
	open_desk_every(&desks[0], getpid(), SECOND);
	scheduler = desks[0].source.scheduler;
	for (int i = 1; i < DESKS; i++) {
		memset(&desks[i], 0, sizeof(desks[i]));
		open_target(&desks[i], getpid(), scheduler);
	}
	for (int i = 0; i < DESKS; i++)
		desks[i].waits = true;
	for (uint64_t i = 0; i < 3; i++) /* two are taken at once, the third waits */
		assert_true(scheduler_tend(scheduler, 2 * (uint64_t)SECOND + i * SECOND / 4) > SECOND / 100);
	for (int i = 0; i < DESKS; i++)
		tries += desks[i].tries;
	assert_int_equal(tries, WRITER_CHILDREN);
	assert_int_equal(write(gate[1], "xxxx", 3), 3);
	for (int i = 0; i < WRITER_CHILDREN; i++)
		reap(&desks[0]);
	(void)scheduler_tend(scheduler, 2 * (uint64_t)SECOND + SECOND / 2 + 1);
	for (int i = 0; i < DESKS; i++)
		assert_int_equal(desks[i].tries, 1);
	reap(&desks[0]);
	for (int i = DESKS; i-- > 0;) {
		desks[i].waits = false;
		close_target(&desks[i]);
	}
	scheduler_free(scheduler);
	close(gate[0]);
	close(gate[1]);
}

/* Else programs that request snapshots all the time would keep everybody else's from being written. */
static void what_a_program_requests_is_not_urgent(void **state)
{
	struct desk desk;

	(void)state;
	open_desk(&desk, getpid());
	desk.asks = true;
	scheduler_tend(desk.source.scheduler, SECOND);
	assert_int_equal(desk.tries, 1);
	assert_false(desk.last->item.urgent);
	reap(&desk);
	desk.asks = true;
	assert_int_equal(scheduler_ask(desk.source.scheduler, getpid(), 7), 1);
	scheduler_tend(desk.source.scheduler, 2 * (uint64_t)SECOND);
	assert_int_equal(desk.tries, 2);
	assert_true(desk.last->item.urgent);
	reap(&desk);
	desk.asks = true; /* and who has asked once is not urgent for ever */
	scheduler_tend(desk.source.scheduler, 3 * (uint64_t)SECOND);
	assert_int_equal(desk.tries, 3);
	assert_false(desk.last->item.urgent);
	reap(&desk);
	close_desk(&desk);
}

/* The profiles of one account that wait leave room for those of another. */
static void a_full_queue_has_room_for_another_account(void **state)
{
	enum { DESKS = 6 };
	static const struct target_plan many = {.interval_ns = SECOND, .account = "uid-1000"};
	static const struct target_plan other = {.interval_ns = SECOND, .account = "uid-33"};
	struct desk desks[DESKS];
	unsigned int tries = 0;

	(void)state;
	assert_int_equal(pipe(gate), 0);
	memset(desks, 0, sizeof(desks));
	const struct scheduler_setup setup = {.settings = &desks[0].settings,
	    .output = &desks[0].output,
	    .answer = on_answer,
	    .context = &desks[0],
	    .pace = {.room = 2, .account_room = 1}};
	struct scheduler *scheduler = scheduler_new(&setup);
	desks[0].settings.verbosity = -1;
	for (int i = 0; i < DESKS; i++) { /* the first comes last in each look */
		open_planned(&desks[i], getpid(), scheduler, i == 0 ? &other : &many);
		desks[i].target.series->periodic.due_ns = SECOND;
		desks[i].waits = true;
	}
	(void)scheduler_tend(scheduler, 2 * (uint64_t)SECOND);
	for (int i = 1; i < DESKS; i++)
		tries += desks[i].tries;
	assert_int_equal(tries, 2);
	assert_int_equal(desks[0].tries, 1);
	assert_int_equal(write(gate[1], "xxx", 3), 3);
	for (int i = DESKS; i-- > 0;)
		desks[i].waits = false;
	for (int i = 0; i < 3; i++)
		reap(&desks[0]);
	for (int i = DESKS; i-- > 0;)
		close_target(&desks[i]);
	scheduler_free(scheduler);
	close(gate[0]);
	close(gate[1]);
}

/* Writing takes longer than the interval: each gets its turn. */
static void a_busy_writer_serves_all_alike(void **state)
{
	enum { DESKS = 2 * WRITER_CHILDREN + 1, ROUNDS = 4 * DESKS };
	struct desk desks[DESKS];
	struct scheduler *scheduler;
	unsigned int least = UINT_MAX, most = 0;

	(void)state;
	assert_int_equal(pipe(gate), 0);
	open_desk_every(&desks[0], getpid(), SECOND);
	scheduler = desks[0].source.scheduler;
	for (int i = 1; i < DESKS; i++) {
		memset(&desks[i], 0, sizeof(desks[i]));
		open_target(&desks[i], getpid(), scheduler);
	}
	for (int i = 0; i < DESKS; i++)
		desks[i].waits = true;
	for (uint64_t i = 2; i < 2 + ROUNDS; i++) {
		(void)scheduler_tend(scheduler, i * SECOND);
		for (int child = 0; child < WRITER_CHILDREN; child++) {
			assert_int_equal(write(gate[1], "x", 1), 1);
			reap(&desks[0]);
		}
	}
	for (int i = 0; i < DESKS; i++) {
		least = desks[i].tries < least ? desks[i].tries : least;
		most = desks[i].tries > most ? desks[i].tries : most;
	}
	assert_in_range(least, most - 1, most);
	assert_in_range(least, 3, ROUNDS);
	for (int i = DESKS; i-- > 0;) {
		desks[i].waits = false;
		close_target(&desks[i]);
	}
	scheduler_free(scheduler);
	close(gate[0]);
	close(gate[1]);
}

/* Who ends when too many wait to be written is counted, and holds nothing. */
static void what_cannot_wait_is_dropped(void **state)
{
	struct desk desk;

	(void)state;
	open_desk(&desk, getpid());
	desk.full = true;
	close_desk(&desk);
	assert_int_equal(desk.tries, 0);
	assert_int_equal(desk.dropped[SNAPSHOT_DROP_CROWD], 1);
	assert_int_equal(desk.dropped[SNAPSHOT_DROP_PAUSED], 0);
}

static void nothing_is_taken_while_paused(void **state)
{
	struct desk desk;

	(void)state;
	open_desk_every(&desk, getpid(), SECOND);
	scheduler_pause(desk.source.scheduler, true);
	assert_int_equal(scheduler_ask(desk.source.scheduler, getpid(), 7), 1);
	for (uint64_t i = 1; i <= 3; i++)
		scheduler_tend(desk.source.scheduler, i * SECOND);
	assert_int_equal(desk.tries, 0);
	assert_int_equal(desk.answers, 1);
	assert_int_equal(desk.answer, -ECANCELED);
	assert_true(desk.target.series->periodic.skipped >= 2);
	scheduler_pause(desk.source.scheduler, false);
	scheduler_tend(desk.source.scheduler, 4 * (uint64_t)SECOND + 1);
	assert_int_equal(desk.tries, 1);
	reap(&desk);
	scheduler_pause(desk.source.scheduler, true);
	close_desk(&desk);
	assert_int_equal(desk.tries, 1);
	assert_int_equal(desk.dropped[SNAPSHOT_DROP_PAUSED], 1);
}

/* Due by its clock, taken and written; returns when, since the last: 0 if it was not. */
static uint64_t taken_after_s(struct desk *desk, uint64_t *now_s, uint64_t until_s)
{
	const unsigned int before = desk->tries;
	const uint64_t since_s = *now_s;

	while (desk->tries == before && *now_s < until_s)
		(void)scheduler_tend(desk->source.scheduler, ++*now_s * SECOND);
	if (desk->tries == before)
		return 0;
	reap(desk);
	return *now_s - since_s;
}

static void the_first_come_early_where_nobody_asked(void **state)
{
	static const uint64_t after_s[] = {5, 5, 10, 20, 20, 60, 60};
	uint64_t now_s = 0;
	struct desk desk;

	(void)state;
	open_desk_every(&desk, getpid(), INTERVAL_USUAL);
	for (size_t i = 0; i < sizeof(after_s) / sizeof(after_s[0]); i++)
		assert_int_equal(taken_after_s(&desk, &now_s, 1000), after_s[i]);
	assert_int_equal(desk.target.series->periodic.skipped, 0);
	close_desk(&desk);
}

/* An interval that changes holds from now on. */
static void an_interval_may_change(void **state)
{
	uint64_t now_s = 0;
	struct desk desk;

	(void)state;
	open_desk(&desk, getpid());
	assert_int_equal(taken_after_s(&desk, &now_s, 100), 0);
	desk.settings.interval_ns = 30 * (uint64_t)SECOND;
	assert_int_equal(taken_after_s(&desk, &now_s, 1000), 20);
	assert_int_equal(taken_after_s(&desk, &now_s, 1000), 30);
	close_desk(&desk);
}

/* Of a crowd that begins at once some have early snapshots, all have those of each minute. */
static void a_crowd_has_few_early_ones(void **state)
{
	enum { DESKS = 300 };
	static struct desk desks[DESKS];
	unsigned int early = 0, more = 0;
	struct scheduler *scheduler;

	(void)state;
	open_desk_every(&desks[0], getpid(), INTERVAL_USUAL);
	scheduler = desks[0].source.scheduler;
	for (int i = 1; i < DESKS; i++)
		open_target(&desks[i], getpid(), scheduler);
	for (int i = 0; i < DESKS; i++)
		desks[i].error = -EIO; /* nothing is written: who is asked is counted */
	for (uint64_t now_s = 1; now_s < 60; now_s++)
		(void)scheduler_tend(scheduler, now_s * SECOND);
	for (int i = 0; i < DESKS; i++)
		early += desks[i].tries;
	assert_in_range(early, 256, 256 + 60);
	(void)scheduler_tend(scheduler, 60 * (uint64_t)SECOND);
	for (int i = 0; i < DESKS; i++)
		more += desks[i].tries;
	assert_int_equal(more - early, DESKS);
	for (int i = DESKS; i-- > 0;)
		close_target(&desks[i]);
	scheduler_free(scheduler);
}

static void two_sessions_in_one_process(void **state)
{
	struct desk one, other;

	(void)state;
	open_desk(&one, getpid());
	open_desk(&other, getpid());
	assert_int_equal(scheduler_ask_all(one.source.scheduler, "a test", 1), 1);
	scheduler_tend(one.source.scheduler, SECOND);
	scheduler_tend(other.source.scheduler, SECOND);
	assert_int_equal(one.tries, 1);
	assert_int_equal(other.tries, 0);
	reap(&one);
	assert_int_equal(one.answers, 1);
	assert_int_equal(other.answers, 0);
	close_desk(&other);
	close_desk(&one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_busy_writer_is_not_asked_all_the_time),
	    cmocka_unit_test(what_a_program_requests_is_not_urgent),
	    cmocka_unit_test(a_full_queue_has_room_for_another_account),
	    cmocka_unit_test(a_busy_writer_serves_all_alike),
	    cmocka_unit_test(what_cannot_wait_is_dropped),
	    cmocka_unit_test(nothing_is_taken_while_paused),
	    cmocka_unit_test(the_first_come_early_where_nobody_asked),
	    cmocka_unit_test(an_interval_may_change),
	    cmocka_unit_test(a_crowd_has_few_early_ones),
	    cmocka_unit_test(two_sessions_in_one_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

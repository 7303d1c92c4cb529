/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for snapshots of targets, with a source whose snapshots are empty files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/intake/target_plan.h"
#include "sampler/write/interval.h"
#include "sampler/write/scheduler.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECOND = 1000000000 };

struct desk {
	struct snapshot_source source; /* first */
	struct snapshot_settings settings;
	struct output output;
	struct target target;
	int error;  /* of taking */
	bool empty; /* nothing was sampled */
	bool asks;  /* the program asks for one */
	bool waits; /* its snapshots are written when the gate opens */
	unsigned int tries, answers, released, dropped[SNAPSHOT_DROPS];
	bool full;             /* no more may wait */
	uint64_t asker, goes;  /* who turns out to have gone when he is told; 0: nobody */
	int answer, told[4];   /* how often, by asker */
	struct snapshot *last; /* that was taken */
	char names[4][16];
};

static int write_nothing(const struct writer_item *item, void **shared)
{
	(void)shared;
	(void)item;
	return 0;
}

static int gate[2];

static int write_at_the_gate(const struct writer_item *item, void **shared)
{
	char byte;

	(void)shared;
	(void)item;
	close(gate[1]); /* should the test end, so do we */
	return read(gate[0], &byte, 1) == 1 ? 0 : -EPIPE;
}

static void discard(struct writer_item *item)
{
	free(item);
}

static bool has(
    const struct snapshot_source *source, const struct target *target, enum snapshot_reason reason)
{
	(void)target;
	return reason == SNAPSHOT_REASON_ASKED || !((const struct desk *)source)->empty;
}

static void look(
    struct snapshot_source *source, struct target *target, uint64_t now_ns, enum snapshot_look how)
{
	struct desk *desk = (struct desk *)source;

	(void)now_ns, (void)how;
	if (desk->asks)
		snapshot_request_ask(&target->series->numbered, SNAPSHOT_BY_PROGRAM, "the program", NULL, 0);
	desk->asks = false;
}

static int take(struct snapshot_source *source, struct target *target, const struct snapshot_order *order,
    struct snapshot **snapshot)
{
	struct desk *desk = (struct desk *)source;

	assert_ptr_equal(target, &desk->target);
	snprintf(desk->names[desk->tries++ % 4], sizeof(desk->names[0]), "%s", order->name);
	if (desk->error)
		return desk->error;
	*snapshot = calloc(1, sizeof(**snapshot));
	assert_non_null(*snapshot);
	(*snapshot)->item = (struct writer_item){
	    .write = desk->waits ? write_at_the_gate : write_nothing, .discard = discard};
	(*snapshot)->path = "a path";
	desk->last = *snapshot;
	return 0;
}

static void dropped(struct snapshot_source *source, const struct target *target, enum snapshot_drop why)
{
	(void)target;
	((struct desk *)source)->dropped[why]++;
}

static bool may_wait(void *context, const struct target *target)
{
	(void)target;
	return !((const struct desk *)context)->full;
}

static void release(struct snapshot_source *source, struct target *target)
{
	assert_null(target->series);
	((struct desk *)source)->released++;
}

static void tell(struct desk *desk, uint64_t asker, pid_t pid, int error)
{
	assert_int_equal(pid, desk->target.pid);
	desk->answers++;
	desk->asker = asker;
	desk->answer = error;
	desk->told[asker % 4]++;
	if (asker == desk->goes)
		scheduler_forget(desk->source.scheduler, asker);
}

static void on_answer(void *context, uint64_t asker, pid_t pid, const char *path, int error)
{
	assert_true(error || strcmp(path, "a path") == 0);
	tell(context, asker, pid, error);
}

static void give(void *context, uint64_t asker, pid_t pid, int fd)
{
	assert_true(fd < 0);
	tell(context, asker, pid, fd);
}

static const struct snapshot_source_kind kind = {.look = look,
    .has = has,
    .in_memory = true,
    .grows = true,
    .take = take,
    .dropped = dropped,
    .release = release};

static void open_planned(
    struct desk *desk, pid_t pid, struct scheduler *scheduler, const struct target_plan *plan)
{
	assert_non_null(scheduler);
	desk->source = (struct snapshot_source){.kind = &kind, .scheduler = scheduler};
	assert_true(target_init(&desk->target, pid, 0));
	desk->target.readable = true;
	desk->target.plan = plan;
	const struct target_listener listener = scheduler_listener(&desk->source);
	listener.watched(listener.context, &desk->target);
}

static void open_target(struct desk *desk, pid_t pid, struct scheduler *scheduler)
{
	open_planned(desk, pid, scheduler, NULL);
}

static void open_desk_every(struct desk *desk, pid_t pid, uint64_t interval_ns)
{
	memset(desk, 0, sizeof(*desk));
	desk->settings.verbosity = -1;
	desk->settings.interval_ns = interval_ns;
	const struct scheduler_setup setup = {.settings = &desk->settings,
	    .output = &desk->output,
	    .answer = on_answer,
	    .may_wait = may_wait,
	    .context = desk,
	    .memory = {give, desk}};
	open_target(desk, pid, scheduler_new(&setup));
}

static void open_desk(struct desk *desk, pid_t pid)
{
	open_desk_every(desk, pid, 0);
}

/* Waits for the writer's child. */
static void reap(struct desk *desk)
{
	int status;
	pid_t pid = waitpid(-1, &status, 0);

	assert_true(pid > 0);
	scheduler_reap(desk->source.scheduler, pid, status);
}

static void close_target(struct desk *desk)
{
	const struct target_listener listener = scheduler_listener(&desk->source);

	desk->target.closed = true;
	listener.closed(listener.context, &desk->target);
	if (!desk->error && !desk->empty && !desk->dropped[SNAPSHOT_DROP_CROWD] &&
	    !desk->dropped[SNAPSHOT_DROP_PAUSED]) {
		assert_false(scheduler_settled(desk->source.scheduler));
		reap(desk);
	}
	assert_true(scheduler_settled(desk->source.scheduler));
	assert_int_equal(desk->released, 1);
	target_fini(&desk->target);
}

static void close_desk(struct desk *desk)
{
	close_target(desk);
	scheduler_free(desk->source.scheduler);
}

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
	    cmocka_unit_test(who_asks_is_answered),
	    cmocka_unit_test(many_ask_while_one_is_written),
	    cmocka_unit_test(who_has_gone_is_not_waited_for),
	    cmocka_unit_test(what_cannot_be_taken_is_answered_and_dropped),
	    cmocka_unit_test(who_goes_when_told_keeps_it_from_no_other),
	    cmocka_unit_test(who_asks_for_what_ends_is_answered),
	    cmocka_unit_test(who_asks_and_ends_has_a_snapshot),
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's queue: what waits is written in batches by one child; who is waited for goes first. */
#include "tests/unit/writer_bench.h"

static void no_more_than_two_at_a_time_and_what_waits_is_shared(void **state)
{
	struct bench *bench = *state;

	assert_true(writer_can_start(bench->writer, 0));
	occupy(bench);
	assert_false(writer_can_start(bench->writer, 0));
	for (int i = WRITER_CHILDREN; i < 8; i++)
		submit(bench, make(bench, i));
	assert_int_equal(bench->notes->attempts, WRITER_CHILDREN);
	release_occupied(bench);
	reap_all(bench, 8);
	assert_true(writer_can_start(bench->writer, 0));
	assert_int_equal(bench->notes->running_most, WRITER_CHILDREN);
	for (int i = 0; i < 8; i++)
		assert_int_equal(bench->done_error[i], 0);
	/* The first child that was free took half of what waited, the oldest, one after the other. */
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t at = attempt_at(bench, WRITER_CHILDREN + (int)i, 0);

		assert_int_equal(bench->notes->before[at], i);
		assert_int_equal(
		    bench->notes->pid[at], bench->notes->pid[attempt_at(bench, WRITER_CHILDREN, 0)]);
	}
	assert_true(place_of(bench, WRITER_CHILDREN) < place_of(bench, WRITER_CHILDREN + 1));
	assert_int_not_equal(bench->notes->pid[attempt_at(bench, WRITER_CHILDREN + 3, 0)],
	    bench->notes->pid[attempt_at(bench, WRITER_CHILDREN, 0)]);
}

static void a_batch_is_limited(void **state)
{
	struct bench *bench = *state;

	occupy(bench);
	for (int i = WRITER_CHILDREN; i < 202; i++)
		submit(bench, make(bench, i));
	release_occupied(bench);
	reap_all(bench, 202);
	uint32_t most = 0;
	for (uint32_t i = 0; i < bench->notes->attempts; i++)
		most = bench->notes->before[i] > most ? bench->notes->before[i] : most;
	assert_int_equal(most, WRITER_BATCH - 1);
	assert_int_equal(bench->notes->attempts, 202);
	for (int i = 0; i < 202; i++)
		assert_int_equal(bench->done_error[i], 0);
}

/* What each item becomes is told while its child goes on with the next. */
static void a_result_does_not_wait_for_the_batch(void **state)
{
	struct bench *bench = *state;

	occupy(bench);
	for (int i = WRITER_CHILDREN; i < WRITER_CHILDREN + 3; i++) {
		struct item *item = make(bench, i);

		item->waits = i == WRITER_CHILDREN + 1; /* the second of the first batch */
		item->result = -i;
		submit(bench, item);
	}
	release_occupied(bench);
	for (int i = 0; i < WRITER_CHILDREN; i++)
		reap_one(bench);
	await_start(bench);
	writer_tend(bench->writer, 1);
	assert_int_equal(bench->done_error[place_of(bench, WRITER_CHILDREN)], -WRITER_CHILDREN);
	open_gate(bench);
	reap_all(bench, WRITER_CHILDREN + 3);
	assert_int_equal(bench->done_error[place_of(bench, WRITER_CHILDREN + 1)], -WRITER_CHILDREN - 1);
}

static void a_child_killed_in_a_batch_keeps_what_it_told(void **state)
{
	struct bench *bench = *state;

	occupy(bench);
	for (int i = WRITER_CHILDREN; i < WRITER_CHILDREN + 12; i++) {
		struct item *item = make(bench, i);

		item->dies_below = i == WRITER_CHILDREN + 2 ? 2 : 0; /* the third of six */
		submit(bench, item);
	}
	release_occupied(bench);
	reap_all(bench, WRITER_CHILDREN + 12);
	int bad = WRITER_CHILDREN + 2;
	for (int i = WRITER_CHILDREN; i < WRITER_CHILDREN + 12; i++) {
		int place = place_of(bench, i);

		assert_int_equal(bench->done_error[place], 0);
		assert_int_equal(bench->done_detail[place], i == bad ? 2 : 0); /* nobody else has less */
	}
	/* Nothing was written twice but the one that kills, and that alone. */
	assert_int_equal(bench->notes->attempts, WRITER_CHILDREN + 12 + 2);
	for (int nth = 0; nth < 3; nth++) {
		uint32_t at = attempt_at(bench, bad, nth);

		assert_int_equal(bench->notes->detail[at], nth);
		assert_int_equal(bench->notes->before[at], nth == 0 ? 2 : 0);
		for (uint32_t i = 0; i < bench->notes->attempts && nth > 0; i++)
			assert_true(i == at || bench->notes->pid[i] != bench->notes->pid[at]);
	}
}

static void too_little_memory_in_a_batch_is_tried_again_alone(void **state)
{
	struct bench *bench = *state;

	occupy(bench);
	for (int i = WRITER_CHILDREN; i < WRITER_CHILDREN + 8; i++) {
		struct item *item = make(bench, i);

		item->short_of_memory = i == WRITER_CHILDREN + 1;
		submit(bench, item);
	}
	release_occupied(bench);
	reap_all(bench, WRITER_CHILDREN + 8);
	for (uint32_t i = 0; i < bench->done; i++) {
		assert_int_equal(bench->done_error[i], 0);
		assert_int_equal(bench->done_detail[i], 0);
	}
	assert_int_equal(bench->notes->before[attempt_at(bench, WRITER_CHILDREN + 1, 0)], 1);
	assert_int_equal(bench->notes->before[attempt_at(bench, WRITER_CHILDREN + 1, 1)], 0);
	/* On its own it is an error like any other. */
	struct item *item = make(bench, 20);
	item->result = -ENOMEM;
	submit(bench, item);
	reap_all(bench, WRITER_CHILDREN + 9);
	assert_int_equal(bench->done_error[place_of(bench, 20)], -ENOMEM);
}

static void who_is_waited_for_does_not_wait_for_a_batch(void **state)
{
	struct bench *bench = *state;

	occupy(bench); /* all children are busy until we let them go on */
	submit(bench, make(bench, 2));
	struct item *item = make(bench, 3);
	item->item.urgent = true;
	submit(bench, item);
	reap_one(bench);
	assert_int_equal(bench->done, 1);
	assert_int_equal(bench->done_number[0], 3);
	release_occupied(bench);
	reap_all(bench, 4);
}

/* A profile of a process' end replaces files of the snapshots before it, and not the other way round. */
static void a_series_is_written_in_its_order(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < 3; i++) {
		struct item *item = make(bench, i);

		item->waits = i == 0;
		item->item.urgent = i > 0;
		item->item.series = i < 2 ? "one" : NULL;
		submit(bench, item);
	}
	reap_one(bench);
	assert_int_equal(bench->done, 1);
	assert_int_equal(bench->done_number[0], 2); /* of no series: it need not wait for the first */
	open_gate(bench);
	reap_all(bench, 3);
	assert_int_equal(bench->done_number[1], 0);
	assert_int_equal(bench->done_number[2], 1);
}

static void a_series_does_not_wait_for_a_batch_either(void **state)
{
	struct bench *bench = *state;

	occupy(bench);
	for (int i = 2; i < 5; i++) {
		struct item *item = make(bench, i);

		item->item.series = i < 3 ? "one" : "other";
		item->item.urgent = i == 4;
		submit(bench, item);
	}
	reap_one(bench); /* the older of the other series, for the sake of the urgent one */
	reap_one(bench);
	assert_int_equal(bench->done, 2);
	assert_int_equal(bench->done_number[0], 3);
	assert_int_equal(bench->done_number[1], 4);
	release_occupied(bench);
	reap_all(bench, 5);
}

/* Tried again with less, it still is the first of its series. */
static void a_retry_keeps_its_place_in_the_series(void **state)
{
	static const char one[] = "one";
	struct bench *bench = *state;
	struct item *item = make(bench, 0);

	item->dies_below = 2;
	item->item.series = one;
	submit(bench, item);
	item = make(bench, 1);
	item->item.series = one;
	submit(bench, item);
	reap_all(bench, 2);
	assert_int_equal(bench->done_number[0], 0);
	assert_int_equal(bench->done_detail[0], 2);
	assert_int_equal(bench->done_number[1], 1);
}

static void nobody_yields_when_all_is_waited_for(void **state)
{
	struct bench *bench = *state;
	int ours = getpriority(PRIO_PROCESS, 0);

	writer_set_hurry(bench->writer, true);
	submit(bench, make(bench, 0));
	reap_one(bench);
	writer_set_hurry(bench->writer, false);
	submit(bench, make(bench, 1));
	reap_one(bench);
	assert_int_equal(bench->notes->nice[0], ours);
	assert_int_not_equal(bench->notes->nice[1], ours);
}

/* Who has a pace lets what nobody waits for wait for more of it. */
static void what_may_wait_is_written_together(void **state)
{
	struct bench *bench = *state;
	struct writer_pace pace = {.patience_ns = 3600 * (uint64_t)SECOND_NS, .room = 4};

	writer_set_pace(bench->writer, &pace);
	for (int i = 0; i < 3; i++)
		submit(bench, make(bench, i));
	writer_tend(bench->writer, SECOND_NS);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child */
	assert_true(writer_can_start(bench->writer, 0));
	struct item *item = make(bench, 3);
	item->item.urgent = true;
	submit(bench, item);
	assert_false(writer_can_start(bench->writer, 0));
	reap_one(bench);
	assert_int_equal(bench->done, 1);
	assert_int_equal(bench->done_number[0], 3);
	pace.patience_ns = 1;
	writer_set_pace(bench->writer, &pace);
	writer_tend(bench->writer, 3600 * (uint64_t)SECOND_NS); /* and nobody was given up */
	reap_all(bench, 4);
	for (int i = 1; i < 4; i++)
		assert_int_equal(bench->done_error[i], 0);
	assert_true(bench->notes->pid[1] == bench->notes->pid[2] ||
	    bench->notes->pid[2] == bench->notes->pid[3] || bench->notes->pid[1] == bench->notes->pid[3]);
}

static void a_queue_that_grows_yields_to_nobody(void **state)
{
	struct bench *bench = *state;
	const struct writer_pace pace = {.patience_ns = 3600 * (uint64_t)SECOND_NS, .room = WRITER_BATCH};
	int ours = getpriority(PRIO_PROCESS, 0);

	writer_set_pace(bench->writer, &pace);
	for (int i = 0; i < WRITER_BATCH; i++)
		submit(bench, make(bench, i));
	reap_one(bench);
	assert_int_equal(bench->notes->nice[0], ours);
	assert_in_range(bench->done, WRITER_BATCH / 2, WRITER_BATCH - 1); /* the rest may wait again */
}

/* It still is at the front of the queue, and nobody overtakes it while another child runs. */
static void a_retry_keeps_its_turn(void **state)
{
	struct bench *bench = *state;
	struct item *item = make(bench, 0);

	item->dies_below = 1;
	submit(bench, item);
	for (int i = 1; i < 4; i++) {
		item = make(bench, i);
		item->waits = true;
		submit(bench, item);
	}
	reap_one(bench); /* the killed one: the other waits */
	reap_one(bench); /* the second attempt, and not item 2, which would wait for ever */
	assert_int_equal(bench->done, 1);
	assert_int_equal(bench->done_number[0], 0);
	assert_int_equal(bench->done_detail[0], 1);
	for (int i = 1; i < 4; i++) {
		open_gate(bench);
		reap_one(bench);
	}
	assert_int_equal(bench->done, 4);
}

/* Nobody waits for all that somebody else has, nor for what is brought in anew. */
static void accounts_take_turns(void **state)
{
	struct bench *bench = *state;
	const int last = WRITER_CHILDREN + 100;

	occupy(bench);
	for (int i = WRITER_CHILDREN; i < last; i++) {
		struct item *item = make(bench, i);

		item->item.account = 1 + (uint64_t)(i % 2); /* two that have many */
		submit(bench, item);
	}
	struct item *item = make(bench, last);
	item->item.account = 3;
	submit(bench, item);
	release_occupied(bench);
	reap_all(bench, (uint32_t)last + 1);
	/* In the first batch, at its turn. */
	assert_int_equal(bench->notes->before[attempt_at(bench, last, 0)], 2);
	assert_int_equal(bench->notes->pid[attempt_at(bench, last, 0)],
	    bench->notes->pid[attempt_at(bench, WRITER_CHILDREN, 0)]);
	for (int i = WRITER_CHILDREN; i + 2 < last; i++)
		assert_true(place_of(bench, i) < place_of(bench, i + 2) ||
		    bench->notes->pid[attempt_at(bench, i, 0)] !=
		        bench->notes->pid[attempt_at(bench, i + 2, 0)]);
}

static void urgent_ones_take_turns_too(void **state)
{
	struct bench *bench = *state;
	enum { ROUNDS = 8, OTHER = 200 };

	occupy(bench);
	for (int i = WRITER_CHILDREN; i < WRITER_CHILDREN + ROUNDS; i++) {
		struct item *item = make(bench, i);

		item->item.urgent = item->waits = true;
		item->item.account = 1;
		submit(bench, item);
	}
	struct item *item = make(bench, OTHER);
	item->item.urgent = true;
	item->item.account = 2;
	submit(bench, item);
	await_start(bench);
	/* The child that is free next takes that of the other account first. */
	for (int i = 0; i < ROUNDS + WRITER_CHILDREN; i++)
		open_gate(bench);
	reap_all(bench, WRITER_CHILDREN + ROUNDS + 1);
	const uint32_t at = attempt_at(bench, OTHER, 0);
	uint32_t behind = 0;
	for (uint32_t i = 0; i < bench->notes->attempts; i++)
		behind += bench->notes->pid[i] == bench->notes->pid[at] && i != at;
	assert_int_equal(bench->notes->before[at], 0);
	assert_int_not_equal(behind, 0);
}

/* What a child does not come to in its time is nobody's fault. */
static void a_batch_ends_after_its_time(void **state)
{
	struct bench *bench = *state;
	const struct writer_pace pace = {.batch_ns = 1};

	writer_set_pace(bench->writer, &pace);
	occupy(bench);
	for (int i = WRITER_CHILDREN; i < 20; i++)
		submit(bench, make(bench, i));
	release_occupied(bench);
	reap_all(bench, 20);
	assert_int_equal(bench->notes->attempts, 20);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(bench->notes->before[i], 0);
		assert_int_equal(bench->done_error[i], 0);
		assert_int_equal(bench->done_detail[i], 0);
	}
}

static void each_account_has_room(void **state)
{
	struct bench *bench = *state;
	const struct writer_pace pace = {.room = 4, .account_room = 2};

	writer_set_pace(bench->writer, &pace);
	occupy(bench);
	for (int i = 2; i < 7; i++) {
		struct item *item = make(bench, i);

		item->item.account = 1 + (i == 6);
		assert_int_equal(writer_can_start(bench->writer, 1), i < 4);
		assert_true(writer_can_start(bench->writer, 2));
		submit(bench, item);
	}
	assert_true(writer_can_start(bench->writer, 2));
	release_occupied(bench);
	reap_all(bench, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(no_more_than_two_at_a_time_and_what_waits_is_shared),
	    TEST(a_batch_is_limited),
	    TEST(a_result_does_not_wait_for_the_batch),
	    TEST(a_child_killed_in_a_batch_keeps_what_it_told),
	    TEST(too_little_memory_in_a_batch_is_tried_again_alone),
	    TEST(who_is_waited_for_does_not_wait_for_a_batch),
	    TEST(a_series_is_written_in_its_order),
	    TEST(a_series_does_not_wait_for_a_batch_either),
	    TEST(a_retry_keeps_its_place_in_the_series),
	    TEST(nobody_yields_when_all_is_waited_for),
	    TEST(a_retry_keeps_its_turn),
	    TEST(what_may_wait_is_written_together),
	    TEST(a_queue_that_grows_yields_to_nobody),
	    TEST(accounts_take_turns),
	    TEST(urgent_ones_take_turns_too),
	    TEST(a_batch_ends_after_its_time),
	    TEST(each_account_has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

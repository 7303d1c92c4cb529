/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook's books in the shared region, compiled into the test, against the sampler's reading of them:
 * threads insert and remove while a reader reads, and are killed in the middle of a write.
 */
#include "preload/claim.h"
#include "preload/slot.h"
#include "preload/tally.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/place_blocks.h"

static void books_agree(void **unused)
{
	uint32_t torn = 0;
	uint64_t bytes = 0;

	for (uint64_t i = 1; i <= 3000; i++)
		assert_true(insert(i * 160).sample.slot != REGION_NO_SLOT);
	for (uint64_t i = 1; i <= 3000; i += 2)
		assert_true(drop(i * 160));
	struct region_place *books = region_place(&run_region, 0);
	assert_int_equal(1500, count_live(0, &torn, &bytes));
	assert_int_equal(0, torn);
	assert_int_equal(3000, books->allocated.samples);
	assert_int_equal(1500, books->live.samples);
	assert_int_equal(bytes, books->live.bytes_q8);
	assert_int_equal(3000, books->peak_samples);
	for (uint64_t i = 2; i <= 3000; i += 2)
		assert_true(drop(i * 160));
	assert_int_equal(0, books->live.samples);
	assert_int_equal(0, books->live.bytes_q8);
	assert_int_equal(0, books->live_variance);
}

/* Blocks of 4 KiB stand for the period: 8 live samples of a period of 1 GiB have a variance of 2^63. */
static void variances_of_any_period_add_up(void **unused)
{
	enum { PERIODS = 5, EACH = 100, SIZE = 4096 };
	const uint64_t periods[PERIODS] = {64 << 10, 1 << 20, 1 << 30, 1ull << 33, WEIGHT_PERIOD_MAX};
	struct region_place *books = region_place(&run_region, 0);
	double sum = 0;

	for (uint64_t i = 0; i < PERIODS; i++) {
		for (uint64_t j = 1; j <= EACH; j++) {
			struct live_entry entry = {
			    .sample = {.size_bytes = SIZE, .period_bytes = periods[i]}};

			block_insert((const void *)(uintptr_t)((i * EACH + j) * 160), &entry);
			sum += weight_of(SIZE, periods[i]).bytes_variance;
		}
		const double off = region_live_variance(books) / sum - 1;
		assert_true(off < 0.001 && off > -0.001);
	}
	for (uint64_t i = 1; i <= PERIODS * EACH; i++)
		assert_true(drop(i * 160));
	assert_int_equal(0, books->live_variance);
	assert_int_equal(0, books->live_large_variance);
}

/* A mapping that is unmapped in part may leave the sum of the large ones. */
static void what_shrinks_changes_its_sum(void **unused)
{
	struct region_place *books = region_place(&run_region, 0);
	const struct weighed whole_one = weigh(1 << 20, UINT64_MAX, 1ull << 22),
	                     part = weigh(1 << 20, 4096, 1ull << 22);

	assert_true(whole_one.large && !part.large);
	tally_live_add(whole_one, 1, 1);
	tally_live_shrink(whole_one, part);
	const double off = region_live_variance(books) / (double)part.bytes_variance - 1;
	assert_true(off < 1e-6 && off > -1e-6);
	tally_live_subtract(part);
	assert_int_equal(0, books->live.bytes_q8);
	assert_int_equal(0, books->live_variance);
	assert_int_equal(0, books->live_large_variance);
}

static void restored_entry_is_live_again(void **unused)
{
	struct live_entry entry;

	insert(8000);
	uint64_t before = region_place(&run_region, 0)->live.bytes_q8;
	assert_true(live_take((void *)8000, &entry));
	block_restore((void *)8000, &entry);
	assert_int_equal(before, region_place(&run_region, 0)->live.bytes_q8);
	assert_true(drop(8000));
}

/* A block that was freed past the hook: its entry goes when the address comes again. */
static void stale_entry_is_counted(void **unused)
{
	struct region_place *books = region_place(&run_region, 0);

	insert(8000);
	insert(8000);
	assert_int_equal(1, books->live.samples);
	assert_int_equal(1, books->lost[REGION_LOSS_STALE].samples);
	assert_true(drop(8000));
	assert_false(drop(8000));
	assert_int_equal(0, books->live.samples);
}

/* More than the table holds: counted as lost, never wrong. */
static void full_table_loses_and_says_so(void **unused)
{
	struct region_place *books = region_place(&run_region, 0);
	uint64_t without = 0, count = 70000;

	for (uint64_t i = 1; i <= count; i++)
		without += insert(i * 160).sample.slot == REGION_NO_SLOT;
	assert_true(without > 0);
	assert_int_equal(without, books->lost[REGION_LOSS_TABLE_FULL].samples);
	uint32_t torn = 0;
	assert_int_equal(count - without, count_live(0, &torn, NULL));
	assert_int_equal(count - without, books->live.samples);
	for (uint64_t i = 1; i <= count; i++)
		drop(i * 160);
	assert_int_equal(0, books->live.samples);
	assert_int_equal(0, books->live.bytes_q8);
}

/* ---- threads and a reader */

enum { THREADS = 4, BLOCKS = 400 };
static _Atomic int stop;

static void work(uint64_t number, int steps)
{
	uint64_t random = number * 0x9e3779b97f4a7c15u + 1;
	bool in[BLOCKS] = {false};

	for (int i = 0; i < steps && !stop; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint64_t n = (random >> 33) % BLOCKS, address = (n * THREADS + number + 1) * 16;
		if (!in[n])
			insert(address);
		else if (random >> 60 != 0 && !drop(address))
			abort();
		else if (random >> 60 == 0) {
			struct live_entry entry;

			if (!live_take((void *)(uintptr_t)address, &entry))
				abort();
			block_restore((void *)(uintptr_t)address, &entry);
			continue;
		}
		in[n] = !in[n];
	}
	for (uint64_t n = 0; n < BLOCKS; n++)
		if (in[n] && !drop((n * THREADS + number + 1) * 16))
			abort();
}

static void *work_thread(void *argument)
{
	work((uintptr_t)argument, 200000);
	return NULL;
}

static void readers_see_whole_slots(void **unused)
{
	pthread_t threads[THREADS];

	stop = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(0, pthread_create(&threads[i], NULL, work_thread, (void *)i));
/* the reader takes fields that may be changing, by design: it belongs to another process */
#ifndef __SANITIZE_THREAD__
	uint32_t torn = 0, seen = 0;
	for (int i = 0; i < 300; i++)
		seen += count_live(0, &torn, NULL);
	assert_true(seen > 0);
	assert_int_equal(0, torn);
#endif
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	struct region_place *books = region_place(&run_region, 0);
	assert_int_equal(0, books->live.samples);
	assert_int_equal(0, books->live.bytes_q8);
	assert_int_equal(0, books->live_variance);
	assert_int_equal(
	    0, books->lost[REGION_LOSS_TABLE_FULL].samples + books->lost[REGION_LOSS_STALE].samples);
}

/* Killed at any instruction: every slot is whole or not live, and the place can be used again. */
static void killed_in_mid_write(void **unused)
{
	for (int round = 0; round < 40; round++) {
		int ready[2];

		assert_int_equal(0, pipe(ready));
		pid_t pid = fork();
		assert_true(pid >= 0); /* kill(-1) would be everybody */
		if (pid == 0) {
			pthread_t threads[THREADS];

			if (!claim_ready() || write(ready[1], "", 1) != 1)
				_exit(1);
			stop = 0;
			for (uintptr_t i = 0; i < THREADS; i++)
				pthread_create(&threads[i], NULL, work_thread, (void *)i);
			for (;;)
				pause();
		}
		char byte;
		assert_int_equal(1, read(ready[0], &byte, 1));
		close(ready[0]);
		close(ready[1]);
		usleep((useconds_t)(500 + round * 137));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		uint32_t torn = 0, live = count_live(1, &torn, NULL);
		assert_int_equal(0, torn);
		/* One operation of each thread may be half done: a slot without its tally, or the reverse. */
		int64_t tally = (int64_t)region_place(&run_region, 1)->live.samples;
		assert_in_range(tally - (int64_t)live + THREADS, 0, 2 * THREADS);
		region_release_place(&run_region, 1);
		assert_int_equal(0, count_live(1, &torn, NULL));
		assert_int_equal(PLACE_FREE, region_place(&run_region, 1)->state);
	}
}

static void places_run_out_quietly(void **unused)
{
	for (uint32_t i = 1; i < REGION_PLACES; i++)
		region_place(&run_region, i)->state = PLACE_READY;
	insert(160);
	pid_t pid = fork();
	if (pid == 0) {
		struct live_entry entry;

		if (claim_ready() || claim_state() != CLAIM_CLOSED || !live_take((void *)160, &entry))
			_exit(1);
		block_remove(&entry); /* the parent's: not touched */
		block_restore((void *)160, &entry);
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(0, status);
	uint32_t torn = 0;
	assert_int_equal(1, count_live(0, &torn, NULL));
	assert_int_equal(1, region_header(&run_region)->places_exhausted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    ISOLATED(books_agree),
	    ISOLATED(variances_of_any_period_add_up),
	    ISOLATED(what_shrinks_changes_its_sum),
	    ISOLATED(restored_entry_is_live_again),
	    ISOLATED(stale_entry_is_counted),
	    ISOLATED(full_table_loses_and_says_so),
	    ISOLATED(readers_see_whole_slots),
	    ISOLATED(killed_in_mid_write),
	    ISOLATED(places_run_out_quietly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

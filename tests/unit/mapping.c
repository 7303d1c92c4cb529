/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook's book of mappings, compiled into the test: against a model that has a byte for every page, with
 * threads that cut the same mappings, at the peak, when the pieces get too many, and in a forked child.
 */
#include "preload/mapping.c"
#include "preload/claim.h"
#include "preload/sample_clock.h"
#include "preload/tables.h"
#include "preload/thread.h"
#include "sampler/intake/live_scan.h"
#include "sampler/intake/region.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct region region;

static void open_region(void)
{
	const struct region_options options = {.period_bytes = 1,
	    .dump_bytes = 8192,
	    .clock_id = CLOCK_MONOTONIC,
	    .live_max = 64 << 10,
	    .mode = REGION_MODE_COPY};

	assert_int_equal(0, region_open(&region, 7, 0xabcd0000, &options));
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(0, madvise(page, 4096, MADV_WIPEONFORK));
	thread_open((uint32_t)getpid(), true);
	const struct claim_setup with = {
	    .place = {.base = region.base,
	        .offsets = region.offsets,
	        .segments = region.segments,
	        .start_segments = region.segments,
	        .large_buffers = region.large_buffers,
	        .key = region.key},
	    .pid = (uint32_t)getpid(),
	    .wiped = page,
	};
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_ASK);
	const struct tables_wish wish = {
	    .period_bytes = 1, .segments = region.segments, .mappings = TABLES_MAPPINGS};
	assert_true(tables_open(&wish));
	claim_open(&with);
}

enum { BASE = 1 << 20 }; /* first page of the tests' address space */

static const void *page_at(uint64_t page)
{
	return (const void *)(uintptr_t)((BASE + page) * REGION_PAGE_BYTES);
}

static struct live_entry map_at_period(uint64_t page, uint64_t pages, uint64_t period)
{
	struct live_entry entry = {
	    .sample = {.size_bytes = pages * REGION_PAGE_BYTES, .period_bytes = period}, .flags = SLOT_MMAP};

	mapping_insert(page_at(page), pages * REGION_PAGE_BYTES, &entry);
	return entry;
}

static void map(uint64_t page, uint64_t pages)
{
	map_at_period(page, pages, 1);
}

static void unmap(uint64_t page, uint64_t pages)
{
	mapping_remove(page_at(page), pages * REGION_PAGE_BYTES, mapping_moment());
}

struct seen {
	uint64_t samples, pages, peak_samples, peak_pages;
};

static struct seen look(uint32_t number)
{
	struct live_scan live_scan;
	struct seen seen = {0};

	assert_int_equal(0, live_scan_take(&live_scan, &region, number));
	for (size_t i = 0; i < live_scan.count; i++) {
		uint64_t pages = region_weight(&live_scan.blocks[i].slot).bytes_q8 / 256 / REGION_PAGE_BYTES;

		seen.samples += live_scan.blocks[i].live;
		seen.pages += live_scan.blocks[i].live ? pages : 0;
		seen.peak_samples += live_scan.blocks[i].peak;
		seen.peak_pages += live_scan.blocks[i].peak ? pages : 0;
	}
	live_scan_fini(&live_scan);
	return seen;
}

/* The table as it is seen, the tallies and what is expected are the same. */
static void expect_live(uint64_t samples, uint64_t pages)
{
	struct seen seen = look(place_index());
	const struct region_place *books = region_place(&region, place_index());

	assert_int_equal(samples, seen.samples);
	assert_int_equal(pages, seen.pages);
	assert_int_equal(samples, books->live.samples);
	assert_int_equal(pages * REGION_PAGE_BYTES * 256, books->live.bytes_q8);
	assert_int_equal(samples << WEIGHT_OBJECTS_SHIFT, books->live.objects_q16);
}

static void parts(void)
{
	map(0, 100);
	expect_live(1, 100);
	unmap(200, 5);
	unmap(100, 5);
	expect_live(1, 100);
	unmap(90, 50);
	unmap(0, 10);
	unmap(40, 10);
	expect_live(1, 70);
	unmap(40, 10);
	unmap(30, 30);
	expect_live(1, 50);
	map(100, 20);
	map(120, 20);
	expect_live(3, 90);
	unmap(60, 70);
	expect_live(2, 30);
	unmap(0, 1000);
	expect_live(0, 0);
	assert_int_equal(0, region_place(&region, 0)->lost[REGION_LOSS_TABLE_FULL].samples);
}

/* The kernel has given the range to somebody else before the first one notes that it is gone. */
static void later_mappings_are_left_alone(void)
{
	map(0, 10);
	uint64_t before = mapping_moment();
	map(0, 10);
	mapping_remove(page_at(0), 10 * REGION_PAGE_BYTES, before);
	expect_live(1, 10);
	unmap(0, 10);
	expect_live(0, 0);
}

static bool has(uint64_t page, uint64_t pages, enum mapping_kind kind)
{
	return mapping_has(page_at(page), pages * REGION_PAGE_BYTES, kind);
}

static void files_are_known(void)
{
	assert_true(mapping_insert_other(page_at(50), 10 * REGION_PAGE_BYTES, MAPPING_FILE));
	map(60, 10);
	assert_false(has(49, 1, MAPPING_FILE));
	assert_true(has(50, 1, MAPPING_FILE));
	assert_true(has(59, 1, MAPPING_FILE));
	assert_false(has(60, 1, MAPPING_FILE));
	assert_false(has(50, 20, MAPPING_RESERVED));
	unmap(55, 7);
	assert_true(has(54, 1, MAPPING_FILE));
	assert_false(has(55, 1, MAPPING_FILE));
	expect_live(1, 8);
	unmap(50, 20);
	expect_live(0, 0);
}

/* What is taken out of the samples stays reserved; what is unmapped does not. And they leave room. */
static void reservations_are_known(void)
{
	assert_true(mapping_insert_other(page_at(0), 100 * REGION_PAGE_BYTES, MAPPING_RESERVED));
	map(10, 20);
	mapping_remove_samples(page_at(0), 15 * REGION_PAGE_BYTES, mapping_moment());
	expect_live(1, 15);
	assert_true(has(0, 15, MAPPING_RESERVED));
	unmap(0, 20);
	expect_live(1, 10);
	assert_false(has(0, 20, MAPPING_RESERVED));
	assert_true(has(0, 21, MAPPING_RESERVED));
	assert_true(has(99, 50, MAPPING_RESERVED));
	assert_false(has(100, 50, MAPPING_RESERVED));
	unmap(0, 100);
	for (int round = 0; round < 2; round++) { /* their number falls with them */
		uint64_t count = 0;
		while (mapping_insert_other(page_at(1000 + 2 * count), REGION_PAGE_BYTES, MAPPING_RESERVED))
			count++;
		assert_int_equal(RESERVED_MAX, count);
		map(0, 1);
		expect_live(1, 1);
		unmap(0, 1000 + 2 * count);
	}
	expect_live(0, 0);
}

/* A part of a sample stands for as many objects, and its share of the bytes. */
static void weights_of_parts(void)
{
	const uint64_t period = 524288;
	struct live_entry entry = map_at_period(0, 100, period);
	struct weighed whole = weigh(entry.sample.size_bytes, UINT64_MAX, period);

	unmap(20, 60);
	const struct region_place *books = region_place(&region, 0);
	assert_int_equal(whole.objects_q16, books->live.objects_q16);
	assert_in_range(books->live.bytes_q8, whole.bytes_q8 * 4 / 10 - 1, whole.bytes_q8 * 4 / 10 + 1);
	struct slot_copy slot;
	assert_true(region_read_slot(&region, entry.sample.slot, &slot));
	assert_int_equal(books->live.bytes_q8, region_weight(&slot).bytes_q8);
	unmap(0, 100);
	assert_int_equal(0, books->live.bytes_q8);
	assert_int_equal(0, books->live.objects_q16);
	assert_int_equal(0, books->live_variance);
}

/* What was there at the peak stays known, whatever is cut off later, and after that is gone. */
static void peak_keeps_its_size(void)
{
	map(0, 100);
	unmap(0, 20);
	map(200, 50); /* the peak: 80 + 50 */
	assert_int_equal(130, look(0).peak_pages);
	unmap(30, 10);
	unmap(200, 25);
	expect_live(2, 95);
	assert_int_equal(130, look(0).peak_pages);
	unmap(0, 250);
	expect_live(0, 0);
	assert_int_equal(130, look(0).peak_pages);
	assert_int_equal(2, look(0).peak_samples);
	for (uint64_t i = 0; i < 5000; i++) { /* their slots are used again */
		map(1000, 1);
		unmap(1000, 1);
	}
	assert_int_equal(130, look(0).peak_pages);
	map(0, 200); /* another peak */
	unmap(10, 10);
	assert_int_equal(200, look(0).peak_pages);
	unmap(0, 200);
	assert_int_equal(200, look(0).peak_pages);
}

static void too_many_pieces_are_counted(void)
{
	struct region_place *books = region_place(&region, 0);

	map(0, 4000);
	map(10000, 100);
	for (uint64_t i = 1; i < 2 * LARGE_PIECES - 2; i += 2)
		unmap(i, 1);
	expect_live(2, 4100 - LARGE_PIECES + 1);
	assert_int_equal(0, books->lost[REGION_LOSS_TABLE_FULL].samples);
	for (uint64_t i = 2 * LARGE_PIECES - 3; i < 2 * LARGE_PIECES + 1; i += 2)
		unmap(i, 1);
	expect_live(1, 100);
	assert_int_equal(1, books->lost[REGION_LOSS_TABLE_FULL].samples);
	assert_int_equal(
	    (4000ull - LARGE_PIECES) * REGION_PAGE_BYTES * 256, books->lost[REGION_LOSS_TABLE_FULL].bytes_q8);
	for (uint32_t i = 0; i < sizeof(book->shapes_taken) / sizeof(book->shapes_taken[0]); i++)
		assert_int_equal(0, book->shapes_taken[i]);
}

static void full_book_is_counted(void)
{
	struct region_place *books = region_place(&region, 0);

	for (uint64_t i = 0; i < MAPPINGS + 10; i++)
		map(i * 2, 1);
	expect_live(MAPPINGS, MAPPINGS);
	assert_int_equal(10, books->lost[REGION_LOSS_TABLE_FULL].samples);
	assert_int_equal(MAPPINGS + 10, books->allocated.samples);
	unmap(100, 100);
	expect_live(MAPPINGS - 50, MAPPINGS - 50);
	for (uint64_t i = 0; i < 50; i++)
		map(100000 + i * 2, 1);
	expect_live(MAPPINGS, MAPPINGS);
	unmap(0, 200000);
	expect_live(0, 0);
}

/* ---- against a model */

enum { PAGES = 3000, STEPS = 30000 };

static void as_the_model(void)
{
	static int owner[PAGES];
	static bool alive[STEPS + 1];
	uint64_t random = 12345;

	for (int step = 1; step <= STEPS; step++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint64_t from = (random >> 33) % PAGES, most = random >> 60 ? 40 : PAGES,
		         count = 1 + (random >> 13) % most;
		count = from + count > PAGES ? PAGES - from : count;
		uint64_t before = mapping_moment();
		mapping_remove(page_at(from), count * REGION_PAGE_BYTES, before);
		if (random >> 59 & 1)
			map(from, count);
		for (uint64_t i = from; i < from + count; i++)
			owner[i] = random >> 59 & 1 ? step : 0;
		if (step % 500 && step != STEPS)
			continue;
		uint64_t pages = 0, samples = 0;
		memset(alive, 0, sizeof(alive));
		for (int i = 0; i < PAGES; i++) {
			pages += owner[i] != 0;
			samples += owner[i] && !alive[owner[i]];
			alive[owner[i]] = true;
		}
		expect_live(samples, pages);
	}
	unmap(0, PAGES);
	expect_live(0, 0);
	for (uint32_t i = 0; i < sizeof(book->shapes_taken) / sizeof(book->shapes_taken[0]); i++)
		assert_int_equal(0, book->shapes_taken[i]);
}

/* ---- threads */

enum { THREADS = 4, SHARED = 8, SHARED_PAGES = 256, ROUNDS = 300 };
static pthread_barrier_t barrier;

/* Each thread's own mappings, in entries and shapes that another one has just left. */
static void come_and_go(uint64_t me, uint64_t *random)
{
	for (int i = 0; i < 20; i++) {
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		uint64_t own = 100000 + me * 64;
		map(own, 32);
		unmap(own + (*random >> 40) % 16, 16);
		unmap(own, 32);
	}
}

static void *cut(void *argument)
{
	uint64_t me = (uintptr_t)argument, random = me * 77 + 1;

	for (int round = 0; round < ROUNDS; round++) {
		if (me == 0)
			for (uint64_t i = 0; i < SHARED; i++)
				map(i * 1000, SHARED_PAGES);
		pthread_barrier_wait(&barrier);
		for (uint64_t page = 0; page < SHARED_PAGES; page++)
			for (uint64_t i = 0; i < SHARED; i++)
				/* some by all at once */
				if ((page * 7 + i) % THREADS == me || (page + i) % 16 == 0)
					unmap(i * 1000 + page, 1);
		come_and_go(me, &random);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void threads_cut_the_same(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uintptr_t i = 1; i < THREADS; i++)
		pthread_create(&threads[i], NULL, cut, (void *)i);
	cut(NULL);
	for (int i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	const struct region_place *books = region_place(&region, 0);
	assert_int_equal(0, books->live.samples);
	assert_int_equal(0, books->live.bytes_q8);
	assert_int_equal(0, books->live_variance);
	assert_int_equal(0, books->lost[REGION_LOSS_TABLE_FULL].samples);
	assert_int_equal(ROUNDS * (SHARED + THREADS * 20), books->allocated.samples);
	for (uint32_t i = 0; i < sizeof(book->shapes_taken) / sizeof(book->shapes_taken[0]); i++)
		assert_int_equal(0, book->shapes_taken[i]);
	expect_live(0, 0);
}

static void child_inherits(void)
{
	map(0, 100);
	map(200, 100);
	(void)mapping_insert_other(page_at(400), 10 * REGION_PAGE_BYTES, MAPPING_FILE);
	unmap(20, 10);
	pid_t pid = fork();
	if (pid == 0) {
		if (!claim_ready())
			_exit(1);
		expect_live(2, 190);
		assert_int_equal(190, look(1).peak_pages);
		unmap(0, 210);
		expect_live(1, 90);
		map(0, 7);
		assert_true(has(405, 1, MAPPING_FILE));
		expect_live(2, 97);
		_exit(0);
	}
	int status = 1;
	waitpid(pid, &status, 0);
	assert_int_equal(0, status);
	expect_live(2, 190);
}

/* Each test has books of its own, in a process of its own. */
static void in_child(void **unused)
{
	void (*test)(void) = *unused;
	pid_t pid = fork();

	if (pid == 0) {
		open_region();
		test();
		/* a failed assertion ends elsewhere: the child's copy of cmocka goes on, and exits otherwise
		 * */
		_exit(0);
	}
	int status = 1;
	waitpid(pid, &status, 0);
	assert_int_equal(0, status);
}

#define ISOLATED(test)                                    \
	{                                                 \
#test, in_child, NULL, NULL, (void *)test \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    ISOLATED(parts),
	    ISOLATED(later_mappings_are_left_alone),
	    ISOLATED(files_are_known),
	    ISOLATED(reservations_are_known),
	    ISOLATED(weights_of_parts),
	    ISOLATED(peak_keeps_its_size),
	    ISOLATED(too_many_pieces_are_counted),
	    ISOLATED(full_book_is_counted),
	    ISOLATED(as_the_model),
	    ISOLATED(threads_cut_the_same),
	    ISOLATED(child_inherits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

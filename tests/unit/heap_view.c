/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* Books, live_scan and frees against a shared region that the test fills in as the hook would. */
#include "sampler/books/heap_view.h"
#include "sampler/books/drain.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

struct world {
	struct region region;
	struct heap *heap;
};

static void open_world(struct world *w, unsigned int labels)
{
	memset(w, 0, sizeof(*w));
	fixture_open(&w->region, 2048);
	const struct heap_options options = {.labels = labels, .temporary_ns = 1000000, .deltas = true};
	w->heap = heap_new(&w->region, &options);
	assert_non_null(w->heap);
	fixture_own(&w->region, 0, 0);
}

static void close_world(struct world *w)
{
	heap_free(w->heap);
	region_close(&w->region);
}

static void set_slot(struct world *w, uint32_t number, uint64_t seq, uint64_t size, uint64_t time_ns)
{
	fixture_live(&w->region, number,
	    &(const struct fixture_block){.seq = seq, .size_bytes = size, .time_ns = time_ns});
}

/* A sample that was taken, and whose stack has arrived. */
static void arrive(struct world *w, uint32_t slot, uint64_t seq, uint32_t stack, uint64_t size)
{
	const struct heap_sample sample = {
	    .slot = slot, .seq = seq, .stack = stack, .tid = 7, .size_bytes = size, .period_bytes = 1};

	assert_int_equal(heap_add(w->heap, &sample), 0);
}

static void count(struct world *w, uint64_t samples, uint64_t bytes)
{
	fixture_count(&w->region, 0, samples, bytes);
}

static uint64_t inuse_of(const struct heap_view *view, uint32_t stack)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < view->count; i++)
		if (view->rows[i].key.stack == stack)
			bytes += view->rows[i].inuse.bytes_q8 >> WEIGHT_BYTES_SHIFT;
	return bytes;
}

static uint64_t alloc_of(const struct heap_view *view, uint32_t stack)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < view->count; i++)
		if (view->rows[i].key.stack == stack)
			bytes += view->rows[i].alloc.bytes_q8 >> WEIGHT_BYTES_SHIFT;
	return bytes;
}

/* The count is read before the slots: a block may come in between, and stacks may come that it does not have.
 * */
static void in_use_is_never_more_than_allocated(void **state)
{
	struct world w;
	struct live_scan live_scan;
	struct heap_view view;

	(void)state;
	open_world(&w, 0);
	count(&w, 1, 100);
	arrive(&w, 0, 0, 1, 100);
	arrive(&w, 5, 5, 1, 300);
	set_slot(&w, 1, 1, 200, 6); /* not counted yet, its stack has not come */
	assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
	for (enum heap_view_kind kind = HEAP_VIEW_LIVE; kind <= HEAP_VIEW_DELTA; kind++) {
		if (kind == HEAP_VIEW_PEAK)
			continue;
		assert_int_equal(heap_view_make(&view, kind, w.heap, &live_scan), 0);
		assert_int_equal(inuse_of(&view, UINT32_MAX), 200);
		assert_int_equal(alloc_of(&view, UINT32_MAX), 200);
		heap_view_fini(&view);
	}
	live_scan_fini(&live_scan);
	close_world(&w);
}

/* The target counts walked stacks itself: it may have more blocks than it says. */
static void walked_stacks_are_allocated_as_often_as_used(void **state)
{
	enum { NUMBER = 3, STACK = 1 };
	const struct tally counted = {
	    1, (uint64_t)100 << WEIGHT_BYTES_SHIFT, (uint64_t)1 << WEIGHT_OBJECTS_SHIFT};
	struct world w;
	struct live_scan live_scan;
	struct heap_view view;

	(void)state;
	open_world(&w, 0);
	assert_int_equal(heap_add_walked(w.heap, NUMBER, STACK, counted), 0);
	for (uint32_t i = 0; i < 2; i++) {
		set_slot(&w, i, i, 200, 6);
		fixture_slot(&w.region, i)->sample.stack = NUMBER;
	}
	assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
	assert_int_equal(heap_view_make(&view, HEAP_VIEW_LIVE, w.heap, &live_scan), 0);
	assert_int_equal(inuse_of(&view, STACK), 400);
	assert_int_equal(alloc_of(&view, STACK), 400);
	heap_view_fini(&view);
	live_scan_fini(&live_scan);
	close_world(&w);
}

static void live_lost_and_allocated(void **state)
{
	struct world w;
	struct live_scan live_scan;
	struct heap_view view;

	(void)state;
	open_world(&w, 0);
	set_slot(&w, 0, 0, 100, 5);
	arrive(&w, 0, 0, 1, 100);
	set_slot(&w, 1, 1, 30, 6); /* its stack never comes */
	set_slot(&w, 2, 2, 7, 7);
	arrive(&w, 2, 2, 1, 7);
	fixture_freed(&w.region, 2, 3);
	count(&w, 3, 137);
	assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
	assert_int_equal(heap_view_make(&view, HEAP_VIEW_LIVE, w.heap, &live_scan), 0);
	assert_int_equal(inuse_of(&view, 1), 100);
	assert_int_equal(alloc_of(&view, 1), 107);
	assert_int_equal(inuse_of(&view, UINT32_MAX), 30);
	assert_int_equal(alloc_of(&view, UINT32_MAX), 30);
	assert_int_equal(view.allocated.samples, 3);
	assert_int_equal(view.lost_alloc.samples, 1);
	assert_int_equal(view.lost_inuse.samples, 1);
	heap_view_fini(&view);
	live_scan_fini(&live_scan);
	/* A process that says it took fewer than arrived, and are in use, is not believed. */
	count(&w, 1, 1);
	assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
	assert_int_equal(heap_view_make(&view, HEAP_VIEW_LIVE, w.heap, &live_scan), 0);
	assert_int_equal(view.allocated.samples, 3);
	assert_int_equal(view.lost_alloc.samples, 1);
	heap_view_fini(&view);
	live_scan_fini(&live_scan);
	assert_int_equal(live_scan_take(&live_scan, &w.region, REGION_PLACES), -EINVAL);
	close_world(&w);
}

/* Order: insert 0, 1, 2 (the peak), free of slot 1 = 3, its slot used again = 4, that freed = 5. */
static void the_peak_outlives_its_slots(void **state)
{
	struct world w;
	struct live_scan live_scan;
	struct heap_view view;

	(void)state;
	open_world(&w, 0);
	for (uint32_t i = 0; i < 3; i++) {
		set_slot(&w, i, i, 100 << i, 1000 + i);
		arrive(&w, i, i, 10 + i, 100 << i);
	}
	fixture_peak(&w.region, 0, 2, 3);
	fixture_freed(&w.region, 1, 3);
	fixture_keep(&w.region, 1);
	for (uint64_t seq = 4; seq < 20; seq += 2) { /* again and again */
		set_slot(&w, 1, seq, 9, 2000);
		arrive(&w, 1, seq, 99, 9);
		fixture_freed(&w.region, 1, seq + 1);
	}
	fixture_freed(&w.region, 0, 21);
	assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
	assert_int_equal(live_scan.peak_ns, 1002);
	assert_int_equal(live_scan.peak_missing, 0);
	assert_int_equal(heap_view_make(&view, HEAP_VIEW_PEAK, w.heap, &live_scan), 0);
	assert_int_equal(inuse_of(&view, 10), 100);
	assert_int_equal(inuse_of(&view, 11), 200);
	assert_int_equal(inuse_of(&view, 12), 400);
	assert_int_equal(inuse_of(&view, 99), 0);
	assert_int_equal(inuse_of(&view, UINT32_MAX), 0);
	heap_view_fini(&view);
	assert_int_equal(heap_view_make(&view, HEAP_VIEW_LIVE, w.heap, &live_scan), 0);
	assert_int_equal(view.inuse.samples, 1);
	heap_view_fini(&view);
	live_scan_fini(&live_scan);
	/* A new peak: what was freed before it is not part of it. */
	set_slot(&w, 5, 22, 5000, 3000);
	arrive(&w, 5, 22, 50, 5000);
	fixture_peak(&w.region, 0, 22, 2);
	assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
	assert_int_equal(live_scan.peak_missing, 0);
	assert_int_equal(heap_view_make(&view, HEAP_VIEW_PEAK, w.heap, &live_scan), 0);
	assert_int_equal(view.inuse.samples, 2);
	assert_int_equal(inuse_of(&view, 12), 400);
	assert_int_equal(inuse_of(&view, 50), 5000);
	heap_view_fini(&view);
	live_scan_fini(&live_scan);
	close_world(&w);
}

static void a_delta_begins_at_the_mark(void **state)
{
	struct world w;
	struct live_scan live_scan;
	struct heap_view view;

	(void)state;
	open_world(&w, 0);
	set_slot(&w, 0, 0, 100, 5);
	arrive(&w, 0, 0, 1, 100);
	count(&w, 2, 150); /* 50 are lost */
	assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
	heap_mark(w.heap, live_scan.counted, 1000);
	live_scan_fini(&live_scan);
	set_slot(&w, 1, 1, 40, 2000);
	arrive(&w, 1, 1, 1, 40);
	arrive(&w, REGION_NO_SLOT, 2, 2, 8);
	count(&w, 5, 150 + 48 + 60); /* 60 more are lost */
	assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
	assert_int_equal(heap_view_make(&view, HEAP_VIEW_DELTA, w.heap, &live_scan), 0);
	assert_int_equal(alloc_of(&view, 1), 40);
	assert_int_equal(inuse_of(&view, 1), 40);
	assert_int_equal(alloc_of(&view, 2), 8);
	assert_int_equal(alloc_of(&view, UINT32_MAX), 60);
	heap_view_fini(&view);
	live_scan_fini(&live_scan);
	close_world(&w);
}

/* Of a flood some samples arrive after the count was read, and hide as many lost ones. */
static void what_is_lost_is_in_one_delta(void **state)
{
	enum { ROUNDS = 8, MANY = 3, LOST = 5, LOST_LATER = 2 };
	struct world w;
	uint64_t arrived = 0, lost = LOST, in_deltas = 0;

	(void)state;
	open_world(&w, 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct live_scan live_scan;
		struct heap_view view;

		lost += round == ROUNDS - 1 ? LOST_LATER : 0;
		count(&w, arrived + lost, (arrived + lost) * 8);
		assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
		for (int i = 0; i < MANY && round % 2 == 0; i++)
			arrive(&w, REGION_NO_SLOT, arrived++, 1, 8);
		assert_int_equal(heap_view_make(&view, HEAP_VIEW_DELTA, w.heap, &live_scan), 0);
		in_deltas += view.lost_alloc.samples;
		heap_mark(w.heap, live_scan.counted, live_scan.now_ns);
		heap_view_fini(&view);
		live_scan_fini(&live_scan);
	}
	assert_int_equal(in_deltas, lost);
	close_world(&w);
}

static void no_row_has_more_in_use_than_allocated(void **state)
{
	struct world w;
	struct live_scan live_scan;
	struct heap_view view;

	(void)state;
	open_world(&w, HEAP_LABEL_AGE | HEAP_LABEL_SIZE | HEAP_LABEL_THREAD);
	for (uint32_t i = 0; i < 40; i++) {
		set_slot(&w, i, i, 1 + i * 13, (uint64_t)1 << i); /* ages from now to long ago */
		arrive(&w, i, i, i % 3, 1 + i * 13);
		if (i % 4 == 0)
			fixture_freed(&w.region, i, 100 + i);
	}
	count(&w, 40, 40 + 13 * 780);
	assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
	live_scan.now_ns = (uint64_t)1 << 40;
	assert_int_equal(heap_view_make(&view, HEAP_VIEW_LIVE, w.heap, &live_scan), 0);
	uint64_t allocated = 0;
	for (size_t i = 0; i < view.count; i++) {
		assert_true(view.rows[i].inuse.bytes_q8 <= view.rows[i].alloc.bytes_q8);
		assert_true(view.rows[i].inuse.objects_q16 <= view.rows[i].alloc.objects_q16);
		assert_int_equal(view.rows[i].key.tid, 7);
		assert_true(view.rows[i].key.size_class > 0);
		allocated += view.rows[i].alloc.bytes_q8;
	}
	assert_int_equal(allocated >> WEIGHT_BYTES_SHIFT, 40 + 13 * 780);
	heap_view_fini(&view);
	live_scan_fini(&live_scan);
	close_world(&w);
}

/* Blocks of one site: one that was temporary, one too old for that, one freed by another thread. */
static void free_three(struct world *w, struct program_run *run, struct process *process)
{
	run->region = &w->region;
	run->places.at[0] = process;
	process->heap = w->heap;
	for (uint64_t seq = 0; seq < 3; seq++)
		arrive(w, 0, seq, 1, 64);
	fixture_free(&w->region, 0, 0, 0, 500, 7);
	fixture_free(&w->region, 1, 0, 1, 5000000, 7);
	fixture_free(&w->region, 2, 0, 2, 500, 8);
}

static void frees_become_lifetimes(void **state)
{
	struct world w;
	struct process process = {0};
	struct program_run run = {.life.state = RUN_READY};

	(void)state;
	open_world(&w, 0);
	_Atomic uint64_t *head = &region_header(&w.region)->frees_head;
	free_three(&w, &run, &process);
	fixture_free(&w.region, 3, 9, 9, 500, 7); /* nothing is known of it */
	atomic_store(head, 5);                    /* and one that is being written */
	drain_note_frees(&run);
	assert_int_equal(drain_frees(&run, 1), 4);
	assert_int_equal(heap_lifetimes(w.heap)->samples, 3);
	assert_int_equal((int)heap_lifetimes(w.heap)->objects, 3);
	assert_int_equal((int)heap_lifetimes(w.heap)->temporary_objects, 1);
	assert_int_equal((int)heap_lifetimes(w.heap)->other_thread_objects, 1);
	assert_int_equal(process.counters.frees_unknown, 1);
	assert_int_equal(run.frees.lost, 0);
	assert_int_equal(drain_frees(&run, 50000000), 0);  /* patience */
	assert_int_equal(drain_frees(&run, 500000000), 0); /* its writer has died */
	assert_int_equal(run.frees.lost, 1);
	/* The ring went round: what was overwritten is counted. */
	atomic_store(head, 5 + 3 * REGION_FREES);
	drain_note_frees(&run);
	drain_frees(&run, 1);
	drain_frees(&run, 500000000);
	assert_true(run.frees.lost >= 1 + 2 * REGION_FREES);
	/* A hostile target turns it back, and forward as far as it goes. */
	atomic_store(head, 0);
	drain_note_frees(&run);
	drain_frees(&run, 1);
	atomic_store(head, UINT64_MAX);
	drain_note_frees(&run);
	drain_frees(&run, 1);
	close_world(&w);
}

/* Of three blocks one was freed soon: it has a row of its own, and the site's sums are what they were. */
static void temporaries_have_rows_of_their_own(void **state)
{
	static const unsigned int labels[] = {0, HEAP_LABEL_LIFETIME, HEAP_LABEL_LIFETIME | HEAP_LABEL_AGE};

	(void)state;
	for (size_t set = 0; set < sizeof(labels) / sizeof(labels[0]); set++) {
		for (enum heap_view_kind kind = HEAP_VIEW_LIVE; kind <= HEAP_VIEW_DELTA; kind++) {
			struct world w;
			struct process process = {0};
			struct program_run run = {.life.state = RUN_READY};
			struct live_scan live_scan;
			struct heap_view view;
			size_t temporary = 0;

			open_world(&w, labels[set]);
			free_three(&w, &run, &process);
			atomic_store(&region_header(&w.region)->frees_head, 3);
			drain_note_frees(&run);
			assert_int_equal(drain_frees(&run, 1), 3);
			count(&w, 3, 192);
			assert_int_equal(live_scan_take(&live_scan, &w.region, 0), 0);
			assert_int_equal(heap_view_make(&view, kind, w.heap, &live_scan), 0);
			assert_int_equal(alloc_of(&view, 1), 192);
			for (size_t i = 0; i < view.count; i++)
				if (view.rows[i].temporary) {
					temporary++;
					assert_int_equal(
					    view.rows[i].alloc.objects_q16 >> WEIGHT_OBJECTS_SHIFT, 1);
					assert_int_equal(
					    view.rows[i].alloc.bytes_q8 >> WEIGHT_BYTES_SHIFT, 64);
					assert_int_equal(view.rows[i].inuse.samples, 0);
				}
			assert_int_equal(temporary, set > 0 && kind != HEAP_VIEW_DELTA);
			heap_view_fini(&view);
			live_scan_fini(&live_scan);
			close_world(&w);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(in_use_is_never_more_than_allocated),
	    cmocka_unit_test(walked_stacks_are_allocated_as_often_as_used),
	    cmocka_unit_test(live_lost_and_allocated),
	    cmocka_unit_test(the_peak_outlives_its_slots),
	    cmocka_unit_test(a_delta_begins_at_the_mark),
	    cmocka_unit_test(what_is_lost_is_in_one_delta),
	    cmocka_unit_test(no_row_has_more_in_use_than_allocated),
	    cmocka_unit_test(frees_become_lifetimes),
	    cmocka_unit_test(temporaries_have_rows_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

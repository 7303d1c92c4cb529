/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of processes that did not begin with nothing: what children got from their parents, and what an
 * earlier sampler had counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/text/clock.h"
#include "sampler/books/adoption.h"
#include "sampler/books/heap_view.h"
#include "tests/unit/process_scene.h"

static void enter_at(struct process *process, uint32_t slot, uint64_t seq, uint64_t pc, uint64_t time_ns)
{
	const struct unwind_frame frame = {.pc = pc, .vaddr = pc, .kind = MAP_KIND_SPECIAL};
	uint32_t stack = stacks_intern(process->target.stacks, &frame, 1, NULL, process->target.maps);
	const struct heap_sample sample = {.slot = slot,
	    .seq = seq,
	    .stack = stack,
	    .tid = 5,
	    .size_bytes = 64,
	    .period_bytes = 1,
	    .time_ns = time_ns};

	assert_int_equal(heap_add(process->heap, &sample), 0);
}

static void enter(struct process *process, uint32_t slot, uint64_t seq, uint64_t pc)
{
	enter_at(process, slot, seq, pc, 0);
}

static void inherit_slot(struct scene *s, uint32_t number, uint64_t seq, uint32_t slot, uint64_t parent_seq)
{
	fixture_live(s->region, number,
	    &(const struct fixture_block){.seq = seq, .size_bytes = 64, .flags = SLOT_INHERITED});
	fixture_slot(s->region, number)->origin_place = 0;
	fixture_slot(s->region, number)->sample.slot = slot;
	fixture_slot(s->region, number)->sample.seq = parent_seq;
}

static uint64_t pc_of(const struct process *process, uint32_t slot, uint64_t seq)
{
	uint32_t site = heap_site_of(process->heap, slot, seq, 0);

	if (site == HEAP_NO_SITE)
		return 0;
	uint32_t stack = heap_site(process->heap, site)->key.stack;
	return stacks_frame(process->target.stacks, stacks_node(process->target.stacks, stack)->frame)->pc;
}

static void inherited_blocks_keep_their_stacks(void **state)
{
	enum { FIRST = REGION_SEGMENT_SLOTS }; /* of the child's slots */
	struct scene *s = *state;

	fixture_own(s->region, 0, 0);
	fixture_own(s->region, 1, 3);
	struct process *parent = claim(s, 0, 0, 0);
	enter(parent, 0, 10, 0x1111);
	inherit_slot(s, FIRST, 1, 0, 10);
	inherit_slot(s, FIRST + 1, 2, 1, 11);          /* its stack has not come yet */
	inherit_slot(s, FIRST + 2, 3, UINT32_MAX, 12); /* hostile */
	inherit_slot(s, FIRST + 3, 4, 0, 10);          /* of another place, it says */
	fixture_slot(s->region, FIRST + 3)->origin_place = 77;
	fixture_live(s->region, FIRST + 4, &(const struct fixture_block){.seq = 5, .size_bytes = 64});
	fixture_slot(s->region, FIRST)->sample.period_bytes = 4096;
	struct process *child = claim(s, 3, 0, 1);
	enter(child, FIRST + 4, 5, 0x3333);
	assert_int_equal(pc_of(child, FIRST, 1), 0x1111);
	assert_int_equal(pc_of(child, FIRST + 1, 2), 0);
	enter(parent, 1, 11, 0x2222);
	process_inherit(child);
	assert_int_equal(pc_of(child, FIRST, 1), 0x1111);
	assert_int_equal(pc_of(child, FIRST + 1, 2), 0x2222);
	assert_int_equal(pc_of(child, FIRST + 2, 3), 0);
	assert_int_equal(pc_of(child, FIRST + 3, 4), 0);
	assert_int_equal(pc_of(child, FIRST + 4, 5), 0x3333);
	assert_int_equal(heap_period_bytes(parent->heap), 1);
	assert_int_equal(heap_period_bytes(child->heap), 4096);
	/* They were allocated by the parent. */
	assert_int_equal(heap_total(child->heap).samples, 1);
	assert_int_equal(heap_total(parent->heap).samples, 2);
}

static pid_t origin_of(const struct process *process, uint32_t slot, uint64_t seq)
{
	uint32_t site = heap_site_of(process->heap, slot, seq, 0);

	assert_int_not_equal(site, HEAP_NO_SITE);
	return process_origin_pid(process, heap_site(process->heap, site)->key.origin);
}

/* A child, a grandchild, and what each of them has sampled itself. */
static void inherited_blocks_keep_their_origin(void **state)
{
	enum { CHILD = REGION_SEGMENT_SLOTS / 4, GRANDCHILD = CHILD * 2 };
	struct scene *s = *state;

	fixture_own(s->region, 0, 0);
	fixture_own(s->region, 1, 3);
	struct process *parent = claim(s, 0, 0, 0);
	parent->target.pid = 100;
	enter(parent, 0, 10, 0x1111);
	inherit_slot(s, REGION_SEGMENT_SLOTS, 1, 0, 10);
	struct process *child = claim(s, 3, 0, 1);
	child->target.pid = 103;
	enter(child, REGION_SEGMENT_SLOTS + CHILD, 2, 0x1111);
	assert_int_equal(origin_of(parent, 0, 10), 100);
	assert_int_equal(origin_of(child, REGION_SEGMENT_SLOTS, 1), 100);
	assert_int_equal(origin_of(child, REGION_SEGMENT_SLOTS + CHILD, 2), 103);
	/* The same stack, but two sites: their errors have nothing in common. */
	assert_int_not_equal(heap_site_of(child->heap, REGION_SEGMENT_SLOTS, 1, 0),
	    heap_site_of(child->heap, REGION_SEGMENT_SLOTS + CHILD, 2, 0));
	/* Of a block without a stack it is certain as long as there is one ancestor. */
	assert_int_equal(process_origin_pid(child, HEAP_ORIGIN_UNKNOWN), 100);

	fixture_own(s->region, 0, 5);
	inherit_slot(s, GRANDCHILD, 1, REGION_SEGMENT_SLOTS, 1);
	inherit_slot(s, GRANDCHILD + 1, 2, REGION_SEGMENT_SLOTS + CHILD, 2);
	fixture_slot(s->region, GRANDCHILD)->origin_place = 3;
	fixture_slot(s->region, GRANDCHILD + 1)->origin_place = 3;
	struct process *grandchild = claim(s, 5, 0, 4);
	assert_int_equal(grandchild->ancestor_count, 2);
	assert_int_equal(origin_of(grandchild, GRANDCHILD, 1), 100);
	assert_int_equal(origin_of(grandchild, GRANDCHILD + 1, 2), 103);
	assert_int_equal(process_origin_pid(grandchild, HEAP_ORIGIN_UNKNOWN), 0);
}

/* No list of ancestors has an end: what is further away is nobody's known origin, and never another's. */
static void a_long_chain_has_unknown_origins(void **state)
{
	struct scene *s = *state;
	struct process *process = claim(s, 0, 0, 0);

	process->target.pid = 1000;
	for (uint32_t i = 1; i < PROCESS_ANCESTORS + 5; i++) {
		process = claim(s, i, 0, i);
		process->target.pid = (pid_t)(1000 + i);
		assert_int_equal(process->ancestor_count, i < PROCESS_ANCESTORS ? i : PROCESS_ANCESTORS);
		assert_int_equal(process_origin_pid(process, 1), 1000);
	}
	assert_int_equal(process_origin_pid(process, PROCESS_ANCESTORS + 1), 0);
}

/* Its parent has ended, and another child has that place, and blocks of the same numbers. */
static void whoever_has_the_parents_place_is_not_the_parent(void **state)
{
	enum { FIRST = REGION_SEGMENT_SLOTS };
	struct scene *s = *state;

	fixture_own(s->region, 1, 3);
	claim(s, 0, 0, 0);
	struct process *parent = claim(s, 2, 0, 1);
	inherit_slot(s, FIRST, 1, 0, 10);
	fixture_slot(s->region, FIRST)->origin_place = 2;
	inherit_slot(s, FIRST + 1, 2, 1, 11);
	fixture_slot(s->region, FIRST + 1)->origin_place = 2;
	enter(parent, 0, 10, 0x1111);
	struct process *child = claim(s, 3, 0, 3);
	program_run_free_process(parent);
	region_release_place(s->region, 2);
	struct process *other = claim(s, 2, 0, 1);
	enter(other, 1, 11, 0x2222);
	process_inherit(child);
	assert_int_equal(pc_of(child, FIRST, 1), 0x1111);
	assert_int_equal(pc_of(child, FIRST + 1, 2), 0); /* its stack is lost */
	assert_ptr_equal(process_parent(other), s->run->places.at[0]);

	/* Nor if all that has happened before the first look at the child. */
	struct process *late = claim(s, 4, 0, 3);
	assert_null(process_parent(late));
	region_place(s->region, 4)->parent_generation = 1;
	assert_ptr_equal(process_parent(late), other);
}

static void what_an_earlier_sampler_counted_stands_under_one_mark(void **state)
{
	struct scene *s = *state;

	fixture_own(s->region, 0, 0);
	for (uint32_t i = 0; i < 5; i++)
		fixture_live(s->region, i, &(const struct fixture_block){.seq = i, .size_bytes = 100});
	fixture_slot(s->region, 2)->sample.period_bytes = 8192;
	fixture_freed(s->region, 4, 5);
	fixture_count(s->region, 0, 5, 500);
	struct process *process = claim(s, 0, 0, 0);
	assert_int_equal(process_samples(process), 5);
	adoption_begin(process);
	adoption_enter(process);
	assert_int_equal(process->counters.before_restart, 5);
	assert_int_equal(heap_period_bytes(process->heap), 8192);
	assert_int_equal(heap_total(process->heap).samples, 5);
	assert_int_equal(heap_total(process->heap).bytes_q8, 500 << WEIGHT_BYTES_SHIFT);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t site = heap_site_of(process->heap, i, i, 0);

		assert_int_not_equal(site, HEAP_NO_SITE);
		uint32_t stack = heap_site(process->heap, site)->key.stack;
		const struct stack_frame *frame =
		    stacks_frame(process->target.stacks, stacks_node(process->target.stacks, stack)->frame);
		assert_string_equal(frame->marker, STACK_BEFORE_RESTART);
	}
	assert_int_equal(heap_site_of(process->heap, 4, 4, 0), HEAP_NO_SITE);
	/* What comes now has a stack of its own, and is counted on top. */
	enter(process, 4, 6, 0x4444);
	assert_int_equal(heap_total(process->heap).samples, 6);
	assert_int_equal(pc_of(process, 4, 6), 0x4444);
}

/* What is taken while books are taken over has nothing to do with what is taken over: neither a sample that
 * an earlier sampler had not read yet is counted twice, nor does a new one take the place of an older. */
static void what_comes_meanwhile_is_no_part_of_it(void **state)
{
	struct scene *s = *state;

	fixture_own(s->region, 0, 0);
	fixture_count(s->region, 0, 5, 5 * 64);
	struct process *process = claim(s, 0, 0, 0);
	const uint64_t before_ns = clock_now_ns();
	adoption_begin(process);
	fixture_count(s->region, 0, 11, 11 * 64); /* of one of the six no stack comes in time */
	enter_at(process, 0, 5, 0x1111, before_ns);
	for (uint32_t i = 1; i < 4; i++)
		enter_at(process, i, 5 + i, 0x2222, clock_now_ns());
	const uint32_t stack = heap_site(process->heap, heap_site_of(process->heap, 1, 6, 0))->key.stack;
	const struct tally two = {2, 2 * 64 << WEIGHT_BYTES_SHIFT, 2 << WEIGHT_OBJECTS_SHIFT};
	assert_int_equal(heap_add_walked(process->heap, 7, stack, two), 0);
	adoption_enter(process);
	assert_int_equal(process->counters.before_restart, 4);
	assert_int_equal(heap_total(process->heap).samples, 10);
	assert_int_equal(heap_total(process->heap).bytes_q8, 10 * 64 << WEIGHT_BYTES_SHIFT);
}

static struct heap_view delta_of(const struct scene *s, const struct process *process)
{
	struct heap_view view;
	struct live_scan scan;

	assert_int_equal(live_scan_take(&scan, s->region, process->place), 0);
	assert_int_equal(heap_view_make(&view, HEAP_VIEW_DELTA, process->heap, &scan), 0);
	heap_mark(process->heap, scan.counted, scan.now_ns);
	live_scan_fini(&scan);
	heap_view_fini(&view); /* its sums stay */
	return view;
}

/* Whether one is taken while the books are still being taken over, or not. What was in a buffer by then is in
 * none either, and hides nothing that is lost later. */
static void no_delta_has_what_was_before(void **state)
{
	for (int early = 0; early < 2; early++) {
		struct scene *s = *state;

		fixture_own(s->region, 0, 0);
		for (uint32_t i = 0; i < 5; i++)
			fixture_live(s->region, i,
			    &(const struct fixture_block){.seq = i, .size_bytes = 100, .time_ns = 7});
		fixture_count(s->region, 0, 9, 900);
		s->run->heap.deltas = true;
		struct process *process = claim(s, 0, 0, 0);
		adoption_begin(process);
		enter_at(process, 6, 7, 0x6666, 8);
		if (early) {
			struct heap_view view = delta_of(s, process);

			assert_int_equal(view.allocated.samples, 0);
			assert_int_equal(view.inuse.samples, 0);
		}
		enter_at(process, 7, 8, 0x6666, 8);
		fixture_live(s->region, 5,
		    &(const struct fixture_block){.seq = 10, .size_bytes = 64, .time_ns = clock_now_ns()});
		fixture_count(s->region, 0, 11, 1028); /* of one of the two no stack ever comes */
		enter_at(process, 5, 10, 0x5555, clock_now_ns());
		adoption_enter(process);
		assert_int_equal(process->counters.before_restart, 7);
		struct heap_view view = delta_of(s, process);
		assert_int_equal(view.allocated.samples, 2);
		assert_int_equal(view.lost_alloc.samples, 1);
		assert_int_equal(view.inuse.samples, 1);
		assert_int_equal(delta_of(s, process).allocated.samples, 0);
		assert_int_equal(close_scene(state), 0);
		assert_int_equal(open_scene(state), 0);
	}
}

/* Such as that of a time namespace: by it everything may be from before the adoption, for ever. */
static void a_clock_of_its_own_hides_nothing_for_long(void **state)
{
	struct scene *s = *state;

	fixture_own(s->region, 0, 0);
	s->run->heap.deltas = true;
	struct process *process = claim(s, 0, 0, 0);
	adoption_begin(process);
	adoption_enter(process);
	fixture_count(s->region, 0, 1, 64);
	enter_at(process, 0, 1, 0x1111, 8);
	struct heap_view view = delta_of(s, process);
	assert_int_equal(view.allocated.samples, 1);
	assert_int_equal(view.lost_alloc.samples, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(inherited_blocks_keep_their_stacks),
	    TEST(inherited_blocks_keep_their_origin),
	    TEST(a_long_chain_has_unknown_origins),
	    TEST(whoever_has_the_parents_place_is_not_the_parent),
	    TEST(what_an_earlier_sampler_counted_stands_under_one_mark),
	    TEST(what_comes_meanwhile_is_no_part_of_it),
	    TEST(no_delta_has_what_was_before),
	    TEST(a_clock_of_its_own_hides_nothing_for_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

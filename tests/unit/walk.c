/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook's walk over stacks made by hand, by rows that the sampler's side has published: what is found, and
 * that neither a wrong row nor a wrong stack leads outside the stack.
 */
#include "preload/claim.h"
#include "preload/clock.h"
#include "preload/sample.h"
#include "preload/thread.h"
#include "preload/walk.h"
#include "sampler/region/region.h"
#include "sampler/region/walk_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORDS = 2048, WORD_BYTES = sizeof(uintptr_t) };
enum { MAIN = 0x401000, MIDDLE = 0x402000, LEAF = 0x403000, PLUGIN = 0x900000 };

static struct region region;
static struct walk_table table;
static uintptr_t *stack; /* between two pages that cannot be read */

static int open_region(void **state)
{
	const struct region_options options = {.period_bytes = 1,
	    .dump_bytes = 8192,
	    .clock_id = CLOCK_MONOTONIC,
	    .live_max = 1024,
	    .mode = REGION_MODE_COPY,
	    .walk = 4};
	const size_t bytes = WORDS * WORD_BYTES;
	(void)state;
	assert_int_equal(0, region_open(&region, 7, 0xabcd0000, &options));
	thread_open((uint32_t)getpid(), true);
	/* the target's own view, in which the tables become read-only */
	unsigned char *base =
	    mmap(NULL, region.offsets.end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, region.fd, 0);
	const struct claim_setup with = {
	    .place = {.base = base,
	        .offsets = region.offsets,
	        .segments = region.segments,
	        .key = region.key},
	    .pid = (uint32_t)getpid(),
	};
	clock_open(CLOCK_MONOTONIC, true);
	claim_open(&with);
	unsigned char *mapped = mmap(NULL, bytes + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack = (uintptr_t *)(void *)(mapped + 4096);
	assert_int_equal(0, mprotect(stack, bytes, PROT_READ | PROT_WRITE));
	sample_thread.stack_low = (uintptr_t)stack;
	sample_thread.stack_top = (uintptr_t)(stack + WORDS);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	memset((void *)region_walk(&region), 0, sizeof(struct walk_area));
	memset(stack, 0, WORDS * WORD_BYTES);
	walk_table_open(&table, &region);
	return 0;
}

static void publish(bool later, uint64_t pc, struct walk_rule rule)
{
	assert_true(walk_table_add_row(&table, later, pc, rule));
}

static uint32_t number_of(const uint64_t *pcs, size_t count, uint64_t generation)
{
	uint64_t hash = WALK_HASH_BEGIN;
	for (size_t i = 0; i < count; i++)
		hash = walk_hash_step(hash, pcs[i]);
	return walk_table_add_stack(&table, walk_hash_end(hash, generation));
}

static struct walk_start at_word(uintptr_t pc, size_t word)
{
	return (struct walk_start){.pc = pc, .sp = (uintptr_t)(stack + word), .fp = 0};
}

/* LEAF by its stack pointer, four words; MIDDLE by its frame pointer; MAIN has no caller. */
static uint32_t three_frames(void)
{
	publish(false, LEAF, (struct walk_rule){.cfa_bytes = 4 * WORD_BYTES, .fp_words = -2, .ra_words = -1});
	publish(false, MIDDLE,
	    (struct walk_rule){.cfa_bytes = 2 * WORD_BYTES, .fp_words = -2, .ra_words = -1, .from_fp = 1});
	publish(false, MAIN, (struct walk_rule){.ra_words = 0});
	stack[10 + 2] = (uintptr_t)(stack + 20); /* LEAF's caller's frame pointer */
	stack[10 + 3] = MIDDLE;
	stack[20 + 1] = MAIN;
	return number_of((const uint64_t[]){LEAF, MIDDLE, MAIN}, 3, 0);
}

static void a_known_stack_has_its_number(void **state)
{
	(void)state;
	assert_int_equal(walk_stack(at_word(LEAF, 10)), 0); /* no rows */
	uint32_t number = three_frames();
	assert_int_not_equal(number, 0);
	assert_int_equal(walk_stack(at_word(LEAF, 10)), number);
	assert_int_equal(
	    walk_stack(at_word(MIDDLE, 10)), 0); /* its frame pointer is not known: another stack */
	stack[10 + 3] = MAIN;
	assert_int_equal(walk_stack(at_word(LEAF, 10)), 0); /* all rows are there, but nobody has seen it */
}

static void a_zero_return_address_ends_a_stack(void **state)
{
	(void)state;
	publish(false, LEAF, (struct walk_rule){.cfa_bytes = 4 * WORD_BYTES, .ra_words = -1});
	uint32_t number = number_of((const uint64_t[]){LEAF}, 1, 0);
	assert_int_equal(walk_stack(at_word(LEAF, 10)), number);
}

static void nothing_is_walked_when_it_is_switched_off(void **state)
{
	(void)state;
	uint32_t number = three_frames();
	atomic_store(&region_header(&region)->walk, 0);
	assert_int_equal(walk_stack(at_word(LEAF, 10)), 0);
	atomic_store(&region_header(&region)->walk, 4);
	assert_int_equal(walk_stack(at_word(LEAF, 10)), number);
}

/* Below and above the stack are pages that kill who reads them. */
static void no_row_leads_outside_the_stack(void **state)
{
	static const int32_t offsets[] = {INT32_MIN, -(WORDS * WORD_BYTES), -WORD_BYTES, 0, 3, WORD_BYTES,
	    (WORDS - 1) * WORD_BYTES, WORDS * WORD_BYTES, (WORDS + 1) * WORD_BYTES, INT32_MAX};
	static const int8_t words[] = {INT8_MIN, -2, -1, 1, 2, INT8_MAX};
	static const int16_t fp_words[] = {0, -1, 1, -400, 400, INT16_MIN, INT16_MAX};
	(void)state;
	uint64_t pc = LEAF;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++)
			for (size_t k = 0; k < 2 * sizeof(fp_words) / sizeof(fp_words[0]); k++) {
				const struct walk_rule rule = {.cfa_bytes = offsets[i],
				    .fp_words = fp_words[k / 2],
				    .ra_words = words[j],
				    .from_fp = k % 2};
				publish(false, ++pc, rule);
				for (size_t at = 0; at < WORDS; at += WORDS - 1) {
					struct walk_start start = at_word(pc, at);
					start.fp = at ? UINTPTR_MAX - 7 : start.sp;
					(void)walk_stack(start);
				}
			}
}

static void a_stack_pointer_elsewhere_is_not_followed(void **state)
{
	(void)state;
	publish(false, LEAF, (struct walk_rule){.cfa_bytes = 2 * WORD_BYTES, .ra_words = -1});
	struct walk_start outside = at_word(LEAF, WORDS);
	assert_int_equal(walk_stack(outside), 0);
	outside.sp = (uintptr_t)stack - 8 * WORD_BYTES;
	assert_int_equal(walk_stack(outside), 0);
}

/* Each step reads within what it takes for the stack, and takes a lower address for the next one. */
static void no_frame_lies_below_the_one_before(void **state)
{
	(void)state;
	publish(false, LEAF, (struct walk_rule){.cfa_bytes = -100 * WORD_BYTES, .ra_words = 100});
	for (size_t i = 0; i < WORDS; i++)
		stack[i] = LEAF;
	assert_int_equal(walk_stack(at_word(LEAF, 300)), 0);
}

static void a_row_that_leads_back_to_itself_ends(void **state)
{
	(void)state;
	publish(false, LEAF, (struct walk_rule){.cfa_bytes = 2 * WORD_BYTES, .ra_words = -1});
	for (size_t i = 0; i < WORDS; i++)
		stack[i] = LEAF;
	assert_int_equal(walk_stack(at_word(LEAF, 0)), 0); /* it reaches the end of the stack */
}

static void the_depth_is_bounded(void **state)
{
	static uint64_t pcs[WALK_FRAMES_MAX + 1];
	(void)state;
	publish(false, LEAF, (struct walk_rule){.cfa_bytes = WORD_BYTES, .ra_words = -1});
	for (size_t i = 0; i <= WALK_FRAMES_MAX; i++)
		pcs[i] = LEAF;
	for (size_t i = 0; i < WALK_FRAMES_MAX; i++)
		stack[i] = LEAF;
	uint32_t deepest = number_of(pcs, WALK_FRAMES_MAX, 0),
	         deeper = number_of(pcs, WALK_FRAMES_MAX + 1, 0);
	assert_int_not_equal(deepest, deeper);
	assert_int_equal(walk_stack(at_word(LEAF, 1)), deepest);
	assert_int_equal(walk_stack(at_word(LEAF, 0)), 0);
}

static void files_that_came_later_have_one_generation(void **state)
{
	(void)state;
	publish(true, PLUGIN, (struct walk_rule){.cfa_bytes = 2 * WORD_BYTES, .ra_words = -1});
	publish(false, MAIN, (struct walk_rule){.ra_words = 0});
	stack[11] = MAIN;
	uint32_t number = number_of((const uint64_t[]){PLUGIN, MAIN}, 2, 1);
	uint64_t generation;
	assert_int_equal(walk_stack(at_word(PLUGIN, 10)), number);
	assert_false(walk_table_is_stale(&table, &generation));
	/* dlclose has begun: at once, whether the sampler has noticed or not */
	walk_unmapping();
	assert_int_equal(walk_stack(at_word(PLUGIN, 10)), 0);
	assert_int_not_equal(walk_stack(at_word(MAIN, 10)), number);
	assert_false(walk_table_is_stale(&table, &generation)); /* it has not ended */
	assert_false(walk_table_takes_later(&table));
	walk_unmapped();
	assert_true(walk_table_is_stale(&table, &generation));
	walk_table_clear_later(&table);
	walk_table_renew(&table, generation);
	assert_int_equal(walk_stack(at_word(PLUGIN, 10)), 0);
	/* another file at the same address: another stack, though all addresses are the same */
	publish(true, PLUGIN, (struct walk_rule){.cfa_bytes = 2 * WORD_BYTES, .ra_words = -1});
	assert_int_equal(walk_stack(at_word(PLUGIN, 10)), 0);
	uint32_t again = number_of((const uint64_t[]){PLUGIN, MAIN}, 2, generation + 1);
	assert_int_not_equal(again, number);
	assert_int_equal(walk_stack(at_word(PLUGIN, 10)), again);
}

struct sums {
	uint32_t calls, stack;
	struct tally count;
};

static void note(void *context, uint32_t number, struct tally count)
{
	struct sums *sums = context;
	sums->calls++;
	sums->stack = number;
	sums->count = count;
}

static void what_is_counted_arrives_once(void **state)
{
	(void)state;
	uint32_t number = three_frames();
	struct sums sums = {0};
	walk_table_drain(&table, 0, note, &sums);
	assert_int_equal(sums.calls, 0);
	walk_count(number, (struct weight){.bytes_q8 = 100, .objects_q16 = 3});
	walk_count(number, (struct weight){.bytes_q8 = 11, .objects_q16 = 4});
	walk_table_drain(&table, 0, note, &sums);
	assert_int_equal(sums.calls, 1);
	assert_int_equal(sums.stack, number);
	assert_int_equal(sums.count.samples, 2);
	assert_int_equal(sums.count.bytes_q8, 111);
	assert_int_equal(sums.count.objects_q16, 7);
	walk_table_drain(&table, 0, note, &sums);
	assert_int_equal(sums.calls, 1);
	walk_table_drain(&table, 1, note, &sums); /* another process' */
	assert_int_equal(sums.calls, 1);
}

static void tables_take_what_they_have_room_for(void **state)
{
	(void)state;
	uint32_t rows = 0, stacks = 0;
	for (uint64_t i = 1; i <= 2 * WALK_ROWS; i++)
		rows += walk_table_add_row(&table, false, i * 16, (struct walk_rule){.ra_words = -1});
	assert_in_range(rows, WALK_ROWS / 2, WALK_ROWS);
	for (uint64_t i = 1; i <= 2 * WALK_STACKS; i++)
		stacks += walk_table_add_stack(&table, walk_hash_end(i, 0)) != 0;
	assert_in_range(stacks, WALK_STACKS / 2, WALK_STACKS - 1);
	assert_int_equal(table.refused, 2 * WALK_ROWS - rows + 2 * WALK_STACKS - stacks);
	assert_int_equal(table.stack_count, stacks);
}

/* A second sampler gives out other numbers, so that what was counted before is not taken for its own. */
static void another_sampler_begins_after_the_last_number(void **state)
{
	(void)state;
	uint32_t number = three_frames();
	struct walk_table second;
	walk_table_open(&second, &region);
	assert_int_equal(walk_stack(at_word(LEAF, 10)), 0);
	table = second;
	assert_int_equal(three_frames(), number + 1);
	assert_int_equal(walk_stack(at_word(LEAF, 10)), number + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_known_stack_has_its_number, begin),
	    cmocka_unit_test_setup(a_zero_return_address_ends_a_stack, begin),
	    cmocka_unit_test_setup(nothing_is_walked_when_it_is_switched_off, begin),
	    cmocka_unit_test_setup(no_row_leads_outside_the_stack, begin),
	    cmocka_unit_test_setup(a_stack_pointer_elsewhere_is_not_followed, begin),
	    cmocka_unit_test_setup(no_frame_lies_below_the_one_before, begin),
	    cmocka_unit_test_setup(a_row_that_leads_back_to_itself_ends, begin),
	    cmocka_unit_test_setup(the_depth_is_bounded, begin),
	    cmocka_unit_test_setup(files_that_came_later_have_one_generation, begin),
	    cmocka_unit_test_setup(what_is_counted_arrives_once, begin),
	    cmocka_unit_test_setup(tables_take_what_they_have_room_for, begin),
	    cmocka_unit_test_setup(another_sampler_begins_after_the_last_number, begin),
	};
	return cmocka_run_group_tests(tests, open_region, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/*
 * The hook's walk over stacks made by hand, by rows that the sampler's side has published: what is found, and
 * that neither a wrong row nor a wrong stack leads outside the stack.
 */
#include "tests/unit/walk_scene.h"

/* Whether that sample is to be dumped with its number. */
static bool asks(struct walk_start start)
{
	const struct walk_found found = walk_stack(start);

	return found.number && found.asked;
}

/* LEAF by its stack pointer, four words; MIDDLE by its frame pointer; MAIN has no caller. */
static uint32_t three_frames(void)
{
	publish(false, LEAF, (struct walk_rule){.cfa_words = 4, .fp_words = -2, .ra_words = -1});
	publish(
	    false, MIDDLE, (struct walk_rule){.cfa_words = 2, .fp_words = -2, .ra_words = -1, .from_fp = 1});
	publish(false, MAIN, (struct walk_rule){.ra_words = 0});
	stack[10 + 2] = (uintptr_t)(stack + 20); /* LEAF's caller's frame pointer */
	stack[10 + 3] = MIDDLE;
	stack[20 + 1] = MAIN;
	return number_of((const uint64_t[]){LEAF, MIDDLE, MAIN}, 3, 0);
}

static void a_known_stack_has_its_number(void **unused)
{
	assert_int_equal(walk(at_word(LEAF, 10)), 0); /* no rows */
	uint32_t number = three_frames();
	assert_int_not_equal(number, 0);
	assert_int_equal(walk(at_word(LEAF, 10)), number);
	assert_false(asks(at_word(LEAF, 10)));
	assert_int_equal(walk(at_word(MIDDLE, 10)), 0); /* its frame pointer is not known */
}

/* All rows are there, but nobody has seen that stack. */
static void a_new_stack_is_dumped_once(void **unused)
{
	uint32_t number = three_frames();
	stack[10 + 3] = MAIN;
	assert_true(asks(at_word(LEAF, 10)));
	assert_int_equal(walk(at_word(LEAF, 10)), number + 1);
	assert_false(asks(at_word(LEAF, 10)));
	walk_not_dumped(number + 1);
	assert_true(asks(at_word(LEAF, 10)));
	walk_table_ask_again(&table, number + 1);
	assert_true(asks(at_word(LEAF, 10)));
	walk_table_tell(&table, number + 1, WALK_NUMBER_UNUSED);
	assert_int_equal(walk(at_word(LEAF, 10)), 0);
}

/* As aarch64's processors with pointer authentication do. */
static uintptr_t sign(uintptr_t return_address)
{
#if defined(__aarch64__)
	register uintptr_t address __asm__("x17") = return_address;
	__asm__("hint #8" /* pacia1716, by any modifier */ : "+r"(address));
	return address;
#else
	return return_address;
#endif
}

static void return_addresses_may_be_signed(void **unused)
{
	uint32_t number = three_frames();
	stack[10 + 3] = sign(stack[10 + 3]);
	stack[20 + 1] = sign(stack[20 + 1]);
	assert_int_equal(walk(at_word(LEAF, 10)), number);
}

/* The sampler has unwound a dump without a number, from before the rows were known, meanwhile. */
static void the_sampler_finds_the_hooks_number(void **unused)
{
	three_frames();
	stack[10 + 3] = MAIN;
	uint32_t number = walk(at_word(LEAF, 10));
	assert_int_equal(number_of((const uint64_t[]){LEAF, MAIN}, 2, 0), number);
	walk_not_dumped(number);
	assert_false(asks(at_word(LEAF, 10)));
}

static void a_zero_return_address_ends_a_stack(void **unused)
{
	publish(false, LEAF, (struct walk_rule){.cfa_words = 4, .ra_words = -1});
	uint32_t number = number_of((const uint64_t[]){LEAF}, 1, 0);
	assert_int_equal(walk(at_word(LEAF, 10)), number);
}

static void nothing_is_walked_when_it_is_switched_off(void **unused)
{
	uint32_t number = three_frames();
	atomic_store(&region_header(&region)->walk, 0);
	assert_int_equal(walk(at_word(LEAF, 10)), 0);
	atomic_store(&region_header(&region)->walk, 4);
	assert_int_equal(walk(at_word(LEAF, 10)), number);
}

/* Below and above the stack are pages that kill who reads them. */
static void no_row_leads_outside_the_stack(void **state)
{
	static const int32_t offsets[] = {
	    INT32_MIN / 2, -WORDS, -1, 0, 1, WORDS - 1, WORDS, WORDS + 1, INT32_MAX / 2};
	static const int16_t words[] = {INT16_MIN, -400, -2, -1, 1, 2, 400, INT16_MAX};
	static const int16_t fp_words[] = {0, -1, 1, -400, 400, INT16_MIN, INT16_MAX};

	(void)state;
	uint64_t pc = LEAF;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++)
			for (size_t k = 0; k < 2 * sizeof(fp_words) / sizeof(fp_words[0]); k++) {
				const struct walk_rule rule = {.cfa_words = offsets[i],
				    .fp_words = fp_words[k / 2],
				    .ra_words = words[j],
				    .from_fp = k % 2};

				publish(false, ++pc, rule);
				for (size_t at = 0; at < WORDS; at += WORDS - 1) {
					struct walk_start start = at_word(pc, at);

					start.fp = at ? UINTPTR_MAX - 7 : start.sp;
					(void)walk(start);
				}
			}
}

static void a_stack_pointer_elsewhere_is_not_followed(void **unused)
{
	publish(false, LEAF, (struct walk_rule){.cfa_words = 2, .ra_words = -1});
	struct walk_start outside = at_word(LEAF, WORDS);
	assert_int_equal(walk(outside), 0);
	outside.sp = (uintptr_t)stack - 8 * WORD_BYTES;
	assert_int_equal(walk(outside), 0);
}

/* Each step reads within what it takes for the stack, and takes a lower address for the next one. */
static void no_frame_lies_below_the_one_before(void **unused)
{
	publish(false, LEAF, (struct walk_rule){.cfa_words = -100, .ra_words = 100});
	for (size_t i = 0; i < WORDS; i++)
		stack[i] = LEAF;
	assert_int_equal(walk(at_word(LEAF, 300)), 0);
}

static void a_row_that_leads_back_to_itself_ends(void **unused)
{
	publish(false, LEAF, (struct walk_rule){.cfa_words = 2, .ra_words = -1});
	for (size_t i = 0; i < WORDS; i++)
		stack[i] = LEAF;
	assert_int_equal(walk(at_word(LEAF, 0)), 0); /* it reaches the end of the stack */
}

static void the_depth_is_bounded(void **state)
{
	static uint64_t pcs[WALK_FRAMES_MAX + 1];

	(void)state;
	publish(false, LEAF, (struct walk_rule){.cfa_words = 1, .ra_words = -1});
	for (size_t i = 0; i <= WALK_FRAMES_MAX; i++)
		pcs[i] = LEAF;
	for (size_t i = 0; i < WALK_FRAMES_MAX; i++)
		stack[i] = LEAF;
	uint32_t deepest = number_of(pcs, WALK_FRAMES_MAX, 0),
	         deeper = number_of(pcs, WALK_FRAMES_MAX + 1, 0);
	assert_int_not_equal(deepest, deeper);
	assert_int_equal(walk(at_word(LEAF, 1)), deepest);
	assert_int_equal(walk(at_word(LEAF, 0)), 0);
}

static void files_that_came_later_have_one_generation(void **unused)
{
	publish(true, PLUGIN, (struct walk_rule){.cfa_words = 2, .ra_words = -1});
	publish(false, MAIN, (struct walk_rule){.ra_words = 0});
	stack[11] = MAIN;
	uint32_t number = number_of((const uint64_t[]){PLUGIN, MAIN}, 2, 1);
	uint64_t generation;
	assert_int_equal(walk(at_word(PLUGIN, 10)), number);
	assert_false(walk_table_is_stale(&table, &generation));
	/* dlclose has begun: at once, whether the sampler has noticed or not */
	struct walk_unmapping begun = walk_unmapping(claim_is_image());
	assert_int_equal(walk(at_word(PLUGIN, 10)), 0);
	assert_int_not_equal(walk(at_word(MAIN, 10)), number);
	assert_false(walk_table_is_stale(&table, &generation)); /* it has not ended */
	assert_false(walk_table_takes_later(&table));
	walk_unmapped(begun, claim_is_image());
	assert_true(walk_table_is_stale(&table, &generation));
	walk_table_clear_later(&table);
	walk_table_renew(&table, generation);
	assert_int_equal(walk(at_word(PLUGIN, 10)), 0);
	/* another file at the same address: another stack, though all addresses are the same */
	publish(true, PLUGIN, (struct walk_rule){.cfa_words = 2, .ra_words = -1});
	uint32_t again = walk(at_word(PLUGIN, 10));
	assert_int_not_equal(again, 0);
	assert_int_not_equal(again, number);
	assert_int_equal(number_of((const uint64_t[]){PLUGIN, MAIN}, 2, generation + 1), again);
}

struct sums {
	uint32_t calls, stack;
	struct tally count;
	bool known;
};

static bool note(void *context, uint32_t number, struct tally count)
{
	struct sums *sums = context;

	sums->calls++;
	sums->stack = number;
	sums->count = count;
	return sums->known;
}

static bool drain(uint32_t place, struct sums *sums)
{
	const struct walk_drain with = {.place = place, .left = left, .changed = note, .context = sums};

	return walk_table_drain(&table, &with);
}

static void what_is_counted_arrives_once(void **unused)
{
	uint32_t number = three_frames();
	struct sums sums = {.known = true};
	assert_false(drain(0, &sums));
	assert_int_equal(sums.calls, 0);
	walk_count(number, (struct weighed){.bytes_q8 = 100, .objects_q16 = 3});
	walk_count(number, (struct weighed){.bytes_q8 = 11, .objects_q16 = 4});
	assert_false(drain(0, &sums));
	assert_int_equal(sums.calls, 1);
	assert_int_equal(sums.stack, number);
	assert_int_equal(sums.count.samples, 2);
	assert_int_equal(sums.count.bytes_q8, 111);
	assert_int_equal(sums.count.objects_q16, 7);
	assert_false(drain(0, &sums));
	assert_int_equal(sums.calls, 1);
	assert_false(drain(1, &sums)); /* another process' */
	assert_int_equal(sums.calls, 1);
}

/* The hook draws a number, and counts under it, while others are taken out. */
static bool note_and_count_more(void *context, uint32_t number, struct tally count)
{
	struct sums *sums = context;

	if (number == 1)
		walk_count(walk_number_take(&region_walk(&region)->numbers, 12345),
		    (struct weighed){.bytes_q8 = 7, .objects_q16 = 1});
	sums->known = true;
	return note(context, number, count);
}

static void what_is_counted_meanwhile_arrives(void **unused)
{
	struct walk_numbers *numbers = &region_walk(&region)->numbers;
	struct sums sums = {.known = true};
	while (walk_numbers_given(numbers) < 65) /* 64 a word: the next is in the second */
		walk_number_take(numbers, 1000 + walk_numbers_given(numbers));
	walk_count(1, (struct weighed){.bytes_q8 = 100, .objects_q16 = 3});
	const struct walk_drain with = {.left = left, .changed = note_and_count_more, .context = &sums};
	assert_false(walk_table_drain(&table, &with));
	if (sums.calls == 1)
		assert_false(drain(0, &sums));
	assert_int_equal(sums.calls, 2);
	assert_int_equal(sums.stack, 66);
	assert_int_equal(sums.count.bytes_q8, 7);
}

/* For a stack of which there is no dump. */
static void a_walk_says_where_it_has_led(void **unused)
{
	uint64_t noted[5] = {0};
	assert_int_equal(walk_frames(at_word(LEAF, 10), noted, 5), 0);
	three_frames();
	assert_int_equal(walk_frames(at_word(LEAF, 10), noted, 3), 0);
	assert_int_equal(walk_frames(at_word(LEAF, 10), noted, 4), 4);
	assert_int_equal(noted[1], LEAF);
	assert_int_equal(noted[2], MIDDLE);
	assert_int_equal(noted[3], MAIN);
	assert_int_equal(noted[4], 0);
}

/* As long as its stack is not known. */
static void what_is_not_taken_comes_again(void **unused)
{
	uint32_t number = three_frames();
	struct sums sums = {.known = false};
	walk_count(number, (struct weighed){.bytes_q8 = 100, .objects_q16 = 3});
	assert_true(drain(0, &sums));
	assert_true(drain(0, &sums));
	assert_int_equal(sums.calls, 2);
	sums.known = true;
	assert_false(drain(0, &sums));
	assert_int_equal(sums.calls, 3);
	assert_int_equal(sums.count.samples, 1);
	assert_false(drain(0, &sums));
	assert_int_equal(sums.calls, 3);
}

/* A signal handler that has interrupted the hook has forked, and the child that returns from it has got a
 * place without counts. Behind the region is a page that kills who writes to it. */
static void a_place_without_counts_counts_nothing(void **unused)
{
	uint32_t number = three_frames(), index = place_view.index;
	for (uint32_t place = WALK_PLACES; place < REGION_PLACES; place += 63) {
		place_view.index = place;
		walk_count(number, (struct weighed){.bytes_q8 = 100, .objects_q16 = 3});
	}
	place_view.index = index;
}

static void tables_take_what_they_have_room_for(void **unused)
{
	uint32_t rows = 0, stacks = 0;
	for (uint64_t i = 1; i <= 2 * WALK_ROWS; i++)
		rows += walk_table_add_row(&table, false, i * 16, (struct walk_rule){.ra_words = -1});
	assert_in_range(rows, WALK_ROWS / 2, WALK_ROWS);
	for (uint64_t i = 1; i <= 2 * WALK_STACKS; i++)
		stacks += walk_table_number(&table, walk_hash_end(i, 0)) != 0;
	assert_in_range(stacks, WALK_STACKS / 2, WALK_STACKS - 1);
	assert_int_equal(walk_numbers_given(&region_walk(&region)->numbers), stacks);
}

/* A second sampler has other numbers, so that what was counted before is not taken for its own. */
static void another_sampler_begins_after_the_last_number(void **state)
{
	bool asked;

	(void)state;
	uint32_t number = three_frames();
	struct walk_numbers *numbers = &region_walk(&region)->numbers;
	uint32_t entry = numbers->entry[walk_table_hash(&table, number) & (WALK_STACK_ENTRIES - 1)];
	struct walk_table second;
	walk_table_open(&second, &region);
	assert_int_equal(walk(at_word(LEAF, 10)), 0);
	table = second;
	assert_false(walk_table_is_ours(&table, number));
	assert_int_equal(entry, number); /* a thread has just found it */
	assert_false(walk_number_use(numbers, number, &asked));
	assert_int_equal(three_frames(), number + 1);
	assert_int_equal(walk(at_word(LEAF, 10)), number + 1);
}

/* The thread was quicker with its sample than with what it had to ask before. */
static void a_number_of_an_earlier_sampler_is_taken_out_of_use(void **state)
{
	bool asked;

	(void)state;
	uint32_t number = three_frames();
	struct sums sums = {.known = true};
	walk_table_open(&table, &region);
	walk_table_tell(&table, number, WALK_NUMBER_WANTED);
	walk_count(number, (struct weighed){.bytes_q8 = 100, .objects_q16 = 3});
	assert_false(drain(0, &sums));
	assert_int_equal(sums.calls, 0);
	assert_false(walk_number_use(&region_walk(&region)->numbers, number, &asked));
}

/* A child that a destructor forks returns from dlclose as well: the parent's call has not ended with that. */
static void a_forked_child_ends_no_dlclose(void **state)
{
	int status;
	uint64_t generation;

	(void)state;
	struct walk_unmapping begun = walk_unmapping(claim_is_image());
	pid_t child = fork();
	if (child == 0) {
		walk_unmapped(begun, claim_is_image());
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(walk_table_is_stale(&table, &generation));
	walk_unmapped(begun, claim_is_image());
	assert_true(walk_table_is_stale(&table, &generation));
}

/* One number of a stack with a row of a file that may be unmapped. */
static uint32_t plugin_frames(void)
{
	publish(true, PLUGIN, (struct walk_rule){.cfa_words = 2, .ra_words = -1});
	publish(false, MAIN, (struct walk_rule){.ra_words = 0});
	stack[11] = MAIN;
	return number_of((const uint64_t[]){PLUGIN, MAIN}, 2, 1);
}

/* A destructor of the child's calls _exit. */
static void a_forked_child_that_ends_inside_dlclose_costs_no_row(void **state)
{
	int status;
	uint64_t generation;

	(void)state;
	uint32_t number = plugin_frames();
	pid_t child = fork();
	if (child == 0) {
		claim_forked(); /* as the libc calls it */
		walk_unmapping(claim_is_image());
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(walk_table_is_stale(&table, &generation));
	assert_int_equal(walk(at_word(PLUGIN, 10)), number);
	/* the parent's own calls are noticed all the same */
	walk_unmapped(walk_unmapping(claim_is_image()), claim_is_image());
	assert_true(walk_table_is_stale(&table, &generation));
}

/* A raw clone, whose thread id is still its parent's. */
static void a_raw_clone_ends_no_dlclose(void **state)
{
	int status;
	uint64_t generation;

	(void)state;
	struct walk_unmapping begun = walk_unmapping(claim_is_image());
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		claim_forked(); /* what the kernel's wiping of the page does */
		walk_unmapped(begun, claim_is_image());
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(walk_table_is_stale(&table, &generation));
	walk_unmapped(begun, claim_is_image());
	assert_true(walk_table_is_stale(&table, &generation));
}

/* An offer that was taken while a destructor ran; and a detach and an attach. */
static void a_dlclose_that_began_before_the_region_voids_its_rows(void **state)
{
	uint64_t generation;

	(void)state;
	struct walk_unmapping begun = walk_unmapping(claim_is_image());
	walk_unmapped(begun, claim_is_image());
	assert_true(walk_table_is_stale(&table, &generation));
	walk_table_renew(&table, generation);
	begun.counted = false;
	walk_unmapped(begun, claim_is_image());
	assert_true(walk_table_is_stale(&table, &generation));
	walk_table_renew(&table, generation);
	begun.counted = true;
	begun.key ^= 1;
	walk_unmapped(begun, claim_is_image());
	assert_true(walk_table_is_stale(&table, &generation));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_known_stack_has_its_number, begin),
	    cmocka_unit_test_setup(a_new_stack_is_dumped_once, begin),
	    cmocka_unit_test_setup(return_addresses_may_be_signed, begin),
	    cmocka_unit_test_setup(the_sampler_finds_the_hooks_number, begin),
	    cmocka_unit_test_setup(a_zero_return_address_ends_a_stack, begin),
	    cmocka_unit_test_setup(nothing_is_walked_when_it_is_switched_off, begin),
	    cmocka_unit_test_setup(no_row_leads_outside_the_stack, begin),
	    cmocka_unit_test_setup(a_stack_pointer_elsewhere_is_not_followed, begin),
	    cmocka_unit_test_setup(no_frame_lies_below_the_one_before, begin),
	    cmocka_unit_test_setup(a_row_that_leads_back_to_itself_ends, begin),
	    cmocka_unit_test_setup(the_depth_is_bounded, begin),
	    cmocka_unit_test_setup(files_that_came_later_have_one_generation, begin),
	    cmocka_unit_test_setup(what_is_counted_arrives_once, begin),
	    cmocka_unit_test_setup(what_is_counted_meanwhile_arrives, begin),
	    cmocka_unit_test_setup(a_walk_says_where_it_has_led, begin),
	    cmocka_unit_test_setup(what_is_not_taken_comes_again, begin),
	    cmocka_unit_test_setup(a_place_without_counts_counts_nothing, begin),
	    cmocka_unit_test_setup(tables_take_what_they_have_room_for, begin),
	    cmocka_unit_test_setup(another_sampler_begins_after_the_last_number, begin),
	    cmocka_unit_test_setup(a_number_of_an_earlier_sampler_is_taken_out_of_use, begin),
	    cmocka_unit_test_setup(a_forked_child_ends_no_dlclose, begin),
	    cmocka_unit_test_setup(a_forked_child_that_ends_inside_dlclose_costs_no_row, begin),
	    cmocka_unit_test_setup(a_raw_clone_ends_no_dlclose, begin),
	    cmocka_unit_test_setup(a_dlclose_that_began_before_the_region_voids_its_rows, begin),
	};

	return cmocka_run_group_tests(tests, open_region, NULL);
}

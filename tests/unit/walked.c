/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sampler teaches a hook from one dump, and what a hook tells: which stack a number stands for. And
 * no number that a target makes up leads anywhere.
 */
#include "tests/unit/walked_scene.h"

static void one_dump_tells_what_a_number_is(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	uint32_t stack = other_stack(), number = take_samples(1, 3);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 0);
	assert_int_equal(process[0]->counters.not_dumped, 3);
	take_samples(1, 2);
	walked_drain(run, true);
	assert_int_equal(process[0]->counters.not_dumped, 5);
	assert_int_equal(dumped(number, stack), 0);
	assert_int_equal(state_of(number), WALK_NUMBER_KNOWN);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 5);
	assert_int_equal(process[0]->counters.not_dumped, 0);
	assert_int_equal(process[0]->counters.walked, 5);
	assert_int_equal(heap_site(process[0]->heap, 0)->key.stack, stack);
	run->period.bytes = 1 << 20; /* what is counted has no period of its own */
	take_samples(1, 1);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 6);
	assert_int_equal(heap_period_bytes(process[0]->heap), 1 << 20);
	assert_int_equal(walked_counters(run).different, 0);
}

/* A number is a program run's, and what it means is known while a process of the program run takes
 * samples. */
static void a_child_takes_the_numbers_of_a_parent_that_has_ended(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	uint32_t stack = other_stack(), number = take_samples(1, 3);
	uint64_t pc = frame_of(0, stack)->pc;
	assert_int_equal(dumped(number, stack), 0);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 3);
	program_run_free_process(process[0]);
	process[0] = NULL;
	assert_int_equal(take_samples_in(1, 1, 2), number);
	walked_drain(run, true);
	assert_int_equal(heap_total(process[1]->heap).samples, 2);
	assert_int_equal(frame_of(1, heap_site(process[1]->heap, 0)->key.stack)->pc, pc);
}

/* The child's stacks are kept beside the parent's own, which do not grow by them. */
static void a_parent_takes_the_numbers_of_a_child_that_has_ended(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	uint32_t stack = other_stack_in(1), number = take_samples(1, 3), before = nodes();
	assert_int_equal(dumped_in(1, number, stack), 0);
	assert_int_equal(nodes(), before);
	program_run_free_process(process[1]);
	process[1] = NULL;
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 3);
	assert_int_equal(heap_site(process[0]->heap, 0)->key.stack, other_stack());
}

/* What is lost is dumped again, and nothing of what was counted is lost with it. */
static void a_dump_that_does_not_come_is_asked_for_again(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	uint32_t stack = other_stack(), number = take_samples(1, 3);
	walked_drain(run, true);
	assert_int_equal(state_of(number), WALK_NUMBER_ASKED);
	for (int i = 0; i < 1000 && state_of(number) != WALK_NUMBER_WANTED; i++) {
		usleep(10000);
		walked_drain(run, true);
	}
	assert_int_equal(state_of(number), WALK_NUMBER_WANTED);
	assert_int_equal(process[0]->counters.not_dumped, 3);
	assert_int_equal(dumped(number, stack), 0);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 3);
}

/* What is known of its samples is what the dump has. */
static void a_cut_dump_ends_a_numbers_use(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	other_stack();
	uint32_t number = take_samples(1, 3);
	uint32_t cut =
	    stacks_intern(process[0]->target.stacks, NULL, 0, "[truncated]", process[0]->target.maps);
	walk.outcome = UNWIND_TRUNCATED;
	assert_int_equal(dumped(number, cut), 0);
	assert_int_equal(state_of(number), WALK_NUMBER_UNUSED);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 3);
	assert_int_equal(heap_site(process[0]->heap, 0)->key.stack, cut);
	assert_int_equal(walked_counters(run).compared, 0);
}

static void without_memory_a_number_stays_unknown(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	other_stack();
	uint32_t number = take_samples(1, 3);
	assert_int_not_equal(dumped(number, UINT32_MAX), 0);
	assert_int_equal(state_of(number), WALK_NUMBER_ASKED);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 0);
	assert_int_equal(process[0]->counters.not_dumped, 3);
}

/* There was no room for a dump: the hook itself has told, of the very stack that has the number's hash. */
static void a_hook_tells_what_a_number_is(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	other_stack();
	uint32_t stack, number = take_samples(1, 3);
	area()->numbers.of[number].hash ^= 1;
	assert_int_equal(walked_told(process[0], &walk, number, UINT64_MAX), 0);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 0);
	area()->numbers.of[number].hash ^= 1;
	assert_int_equal(walked_told(process[0], &walk, number, UINT64_MAX), 0);
	assert_int_equal(state_of(number), WALK_NUMBER_KNOWN);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 3);
	stack = heap_site(process[0]->heap, 0)->key.stack; /* without the library's own frames */
	assert_int_equal(stacks_node(process[0]->target.stacks, stack)->outer, STACK_ROOT);
	assert_int_equal(frame_of(0, stack)->pc, frames[1].pc);
	assert_int_equal(walked_counters(run).by_frames, 1);
	assert_int_equal(walked_counters(run).compared, 0);
	assert_int_equal(dumped(number, stack), 0); /* later it is compared as any other */
	assert_int_equal(walked_counters(run).compared, 1);
	assert_int_equal(walked_counters(run).different, 0);
}

/* Whatever a target writes there, and however often: of what is no number's stack nothing is kept. */
static void what_a_hook_makes_up_takes_no_memory(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	maps_free(other_frames());
	uint32_t number = take_samples(1, 3), before = nodes();
	area()->numbers.of[number].hash ^= 1;
	assert_int_equal(walked_told(process[0], &walk, number, UINT64_MAX), 0);
	assert_int_equal(nodes(), before);
	area()->numbers.of[number].hash ^= 1;
	assert_int_equal(walked_told(process[0], &walk, number, UINT64_MAX), 0);
	assert_true(nodes() > before);
	before = nodes();
	walk.count = FRAMES; /* of a number that is known, another stack */
	frames[1] = frames[0];
	assert_int_equal(walked_told(process[0], &walk, number, UINT64_MAX), 0);
	assert_int_equal(nodes(), before);
}

/* The hook's buffer with the frames of `walk`. */
static void tell_frames(uint32_t number)
{
	struct region_buffer *buffer = fixture_buffer(run->region, 0, 0);

	memset(buffer, 0, sizeof(*buffer));
	fixture_take_buffer(run->region, 0, 0);
	buffer->content = BUFFER_FRAMES;
	buffer->sample.stack = number;
	buffer->sample.time_ns = LEARNED_NS;
	buffer->stack_bytes = (uint32_t)(walk.count * sizeof(uint64_t));
	for (size_t i = 0; i < walk.count; i++) {
		const uint64_t address = frames[i].pc + 1;

		memcpy((unsigned char *)(buffer + 1) + i * sizeof(address), &address, sizeof(address));
	}
	atomic_store(&buffer->word, buffer_word(BUFFER_FULL, 0));
	atomic_fetch_add(&region_header(run->region)->copied, 1);
}

/* What the hook tells is bounded as what is dumped. */
static void what_a_hook_tells_counts_against_the_bound(void **state)
{
	struct memory_bound memory = {.max_bytes = 1};
	struct intake intake;

	(void)state;
	assert_int_equal(intake_init(&intake, store, &memory, 0, true), 0);
	run->memory = &memory;
	learn(0, LEARNED_NS);
	maps_free(process[0]->target.maps);
	process[0]->target.maps = other_frames();
	uint32_t number = take_samples(1, 3), before = nodes();
	process[0]->share.held_bytes = 1;
	memory.held_bytes += 1;
	tell_frames(number);
	assert_int_equal(intake_buffers(&intake, run, UINT64_MAX), 1);
	assert_int_equal(nodes(), before);
	assert_int_equal(state_of(number), WALK_NUMBER_ASKED);
	assert_int_equal(memory.refused, 1);
	memory.max_bytes = 0;
	tell_frames(number);
	assert_int_equal(intake_buffers(&intake, run, UINT64_MAX), 1);
	assert_true(nodes() > before);
	assert_int_equal(state_of(number), WALK_NUMBER_KNOWN);
	assert_int_equal(memory.refused, 1);
	assert_true(process[0]->share.held_bytes >= stacks_bytes(process[0]->target.stacks));
	assert_true(run->walked.share.held_bytes > 0);
	assert_true(memory.held_bytes >= process[0]->share.held_bytes + run->walked.share.held_bytes);
	/* The first of a child makes a table; the program run's own process' stacks needed none. */
	const uint64_t own_bytes = run->walked.share.held_bytes;
	struct stacks *empty = stacks_new();
	number = take_samples(7, 1);
	assert_int_equal(dumped_in(1, number, other_stack_in(1)), 0);
	assert_true(run->walked.share.held_bytes >= own_bytes + stacks_bytes(empty));
	stacks_unref(empty);
	walked_free(run);
	assert_int_equal(run->walked.share.held_bytes, 0);
	run->memory = NULL;
	intake_fini(&intake);
}

/* Allocated and freed between two drains. */
static void frees_of_the_first_samples_of_a_number_are_known(void **state)
{
	struct intake intake = {0};
	struct probe probe = {.backend = BACKEND_COPY};
	struct registry registry = {.setup = {.intake = &intake, .probe = &probe, .verbosity = -1}};

	(void)state;
	assert_int_equal(table_add(&intake.books.runs, run->region->key, run), 0);
	registry_init(&registry);
	learn(0, LEARNED_NS);
	uint32_t stack = other_stack(), number = take_samples(1, 3);
	assert_int_equal(dumped(number, stack), 0);
	for (uint32_t i = 0; i < 3; i++) {
		fixture_free(run->region, i, i, i, 500, 7);
		fixture_free_entry(run->region, i)->sample.stack = number;
	}
	atomic_store(&region_header(run->region)->frees_head, 3);
	drain_all(&registry);
	assert_int_equal(in_the_books(), 3);
	assert_int_equal(heap_lifetimes(process[0]->heap)->samples, 3);
	assert_int_equal(process[0]->counters.frees_unknown, 0);
	books_fini(&intake.books);
}

static void a_dump_that_shows_another_stack_ends_walking(void **state)
{
	(void)state;
	list_start_files();
	learn(0, LEARNED_NS);
	assert_in_range(rows(area()->rows, WALK_ROWS), 1, FRAMES);
	uint32_t stack = other_stack(), number = take_samples(0, 3);
	assert_int_equal(dumped(number, stack), 0);
	assert_int_equal(walked_counters(run).compared, 1);
	assert_int_equal(walked_counters(run).different, 0);
	uint32_t wrong = take_samples(7, 2); /* another hash */
	assert_int_not_equal(wrong, number);
	assert_int_equal(dumped(wrong, stack), 0);
	assert_int_equal(walked_counters(run).compared, 2);
	assert_int_equal(walked_counters(run).different, 1);
	assert_int_equal(region_header(run->region)->walk, 0);
	assert_int_equal(rows(area()->rows, WALK_ROWS), 0);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 5); /* the dump is what is known of them */
}

/* Its hash has the generation, so nobody will find the number again. */
static void a_dump_of_files_that_were_unmapped_since_says_nothing(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	uint32_t stack = other_stack(), number = take_samples(1, 3);
	atomic_store(&area()->generation, 1); /* dlclose has begun */
	assert_int_equal(dumped(number, stack), 0);
	assert_int_equal(state_of(number), WALK_NUMBER_UNUSED);
	assert_int_equal(walked_counters(run).compared, 0);
	walked_drain(run, true);
	assert_int_equal(in_the_books(), 3);
}

/* The target may write any number, and how many there are. */
static void made_up_numbers_lead_nowhere(void **state)
{
	(void)state;
	atomic_store(&area()->numbers.given, 5000); /* before the sampler's first look */
	uint32_t stack = learn(0, LEARNED_NS);
	atomic_store(&area()->numbers.given, UINT32_MAX);
	assert_false(walked_is_ours(process[0], 0));
	assert_false(walked_is_ours(process[0], 5000));
	assert_true(walked_is_ours(process[0], 5001));
	assert_false(walked_is_ours(process[0], WALK_STACKS));
	assert_false(walked_is_ours(process[0], UINT32_MAX));
	atomic_store(&area()->numbers.given, 5001);
	for (uint32_t number = 1; number < 8192; number++)
		if (walked_is_ours(process[0], number))
			dumped(number, stack);
	assert_int_equal(walked_counters(run).different, 0);
	assert_in_range(walked_counters(run).compared, 0, 1);
	for (uint32_t number = 1; number < WALK_STACKS; number++) {
		area()->counts[0].count[number].samples = 3;
		area()->counts[0].changed[number / 64] |= 1ull << number % 64;
	}
	atomic_store(&region_place(run->region, 0)->walked, 1);
	walked_drain(run, true);
	assert_in_range(heap_total(process[0]->heap).samples, 0, 3);
}

/* A dump that ends early has fewer frames than the walk, and says nothing of it. */
static void cut_dumps_are_not_compared(void **state)
{
	(void)state;
	learn(0, LEARNED_NS);
	uint32_t number = (uint32_t)area()->numbers.given;
	assert_int_not_equal(number, 0);
	uint32_t cut =
	    stacks_intern(process[0]->target.stacks, NULL, 0, "[truncated]", process[0]->target.maps);
	walk.outcome = UNWIND_TRUNCATED;
	dumped(number, cut);
	walk.outcome = UNWIND_COMPLETE;
	assert_int_equal(walked_counters(run).compared, 0);
	dumped(number, cut);
	assert_int_equal(walked_counters(run).different, 1);
	assert_int_equal(rows(area()->later, WALK_LATER_ROWS), 0); /* and all rows are gone */
}

static int64_t blocks(void)
{
	struct stat status;

	assert_int_equal(fstat(run->region->fd, &status), 0);
	return status.st_blocks;
}

/* Before it is taken, or at any time after that: its tables, and the kept entries of its slots, would be
 * memory of ours. */
static void an_offer_that_says_that_it_walks_takes_no_memory(void **state)
{
	(void)state;
	const struct region_offer_terms terms = {.id = 1, .key = 0x20000, .period_bytes = 1, .clock_id = 1};
	struct region_header *header = region_header(run->region);
	run->region->sparse = true;
	header->attached_after_ns = header->attached_rss_bytes = header->thread_stacks = header->filtered =
	    header->start_paused = 1;
	atomic_store(&header->sampler_pid, 0);
	assert_int_equal(region_offer_accept(run->region, &terms), 0);
	assert_int_equal(atomic_load(&header->walk), 0);
	assert_int_equal(header->attached_after_ns, 0);
	assert_int_equal(header->attached_rss_bytes, 0);
	assert_int_equal(header->thread_stacks, 0);
	assert_int_equal(header->filtered, 0);
	assert_int_equal(header->start_paused, 0);
	atomic_store(&header->walk, 1);
	atomic_store(&area()->numbers.given, WALK_STACKS - 1);
	for (uint32_t i = 0; i < 2; i++)
		for (size_t word = 0; word < WALK_STACKS / 64; word++)
			atomic_store(&area()->counts[i].changed[word], UINT64_MAX);
	const int64_t before = blocks();
	walked_begin(run);
	uint32_t stack = learn(0, LEARNED_NS);
	assert_int_equal(walked_drain(run, true), 0);
	for (uint64_t seq = 0; seq < 4; seq++) {
		const struct heap_sample sample = {
		    .slot = 5, .seq = seq, .stack = stack, .size_bytes = 8, .period_bytes = 1};

		assert_int_equal(heap_add(process[0]->heap, &sample), 0);
	}
	assert_int_equal(blocks(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(made_up_numbers_lead_nowhere, begin, end),
	    cmocka_unit_test_setup_teardown(cut_dumps_are_not_compared, begin, end),
	    cmocka_unit_test_setup_teardown(one_dump_tells_what_a_number_is, begin, end),
	    cmocka_unit_test_setup_teardown(a_child_takes_the_numbers_of_a_parent_that_has_ended, begin, end),
	    cmocka_unit_test_setup_teardown(a_parent_takes_the_numbers_of_a_child_that_has_ended, begin, end),
	    cmocka_unit_test_setup_teardown(a_dump_that_does_not_come_is_asked_for_again, begin, end),
	    cmocka_unit_test_setup_teardown(a_cut_dump_ends_a_numbers_use, begin, end),
	    cmocka_unit_test_setup_teardown(without_memory_a_number_stays_unknown, begin, end),
	    cmocka_unit_test_setup_teardown(a_hook_tells_what_a_number_is, begin, end),
	    cmocka_unit_test_setup_teardown(what_a_hook_makes_up_takes_no_memory, begin, end),
	    cmocka_unit_test_setup_teardown(what_a_hook_tells_counts_against_the_bound, begin, end),
	    cmocka_unit_test_setup_teardown(frees_of_the_first_samples_of_a_number_are_known, begin, end),
	    cmocka_unit_test_setup_teardown(a_dump_that_shows_another_stack_ends_walking, begin, end),
	    cmocka_unit_test_setup_teardown(
	        a_dump_of_files_that_were_unmapped_since_says_nothing, begin, end),
	    cmocka_unit_test_setup_teardown(an_offer_that_says_that_it_walks_takes_no_memory, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

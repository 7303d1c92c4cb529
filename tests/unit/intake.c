/* SPDX-License-Identifier: Apache-2.0 */
/* What comes by records and by stack buffers, into the books of two places: true, doubled, late, and from a
 * target that writes whatever it likes. */
#include "sampler/books/intake.h"
#include "proto/buffer.h"
#include "sampler/books/executed.h"
#include "sampler/books/program_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <linux/perf_event.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

enum { NOW_NS = 1000000, KEY = 0x10000 };

struct scene {
	struct modules *store;
	struct memory_bound memory;
	struct intake intake;
	struct program_run *run;
	const struct region *region;
	struct process *process[2];
	uint64_t regs[64];           /* of a record */
	struct program_run *waiting; /* not found yet */
};

static void some_code(void)
{
	__asm__ volatile("");
}

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct region *region = malloc(sizeof(*region));

	*state = s;
	s->store = modules_new(16);
	fixture_open(region, 1024);
	s->region = region;
	s->run = program_run_new(region, 1);
	s->run->life.state = RUN_READY;
	s->run->heap.labels = HEAP_LABEL_THREAD;
	s->run->capture.event_backend = BACKEND_BREAKPOINT;
	if (intake_init(&s->intake, s->store, &s->memory, regs_arch_native()->perf_mask, true) != 0 ||
	    books_add_run(&s->intake.books, s->run) != 0)
		return -1;
	for (uint32_t i = 0; i < 2; i++) {
		region_place(region, i)->pid = 0; /* nobody to be found: no maps either */
		atomic_store(&region_place(region, i)->state, PLACE_READY);
		s->process[i] = program_run_meet(s->run, i, s->store);
	}
	return !s->process[0] || !s->process[1];
}

static int close_scene(void **state)
{
	struct scene *s = *state;

	for (uint32_t i = 0; i < REGION_PLACES; i++)
		if (s->run->places.at[i])
			program_run_free_process(s->run->places.at[i]);
	books_remove_run(s->run);
	program_run_free(s->run);
	intake_fini(&s->intake);
	modules_free(s->store);
	free(s);
	return 0;
}

static uint64_t samples_of(const struct scene *s, uint32_t place)
{
	return heap_total(s->process[place]->heap).samples;
}

/* ---- records */

struct arguments {
	uint64_t key, slot, seq, size_bytes, period_bytes;
};

/* A sample as the trigger's registers tell it, in the order of perf's mask. */
static struct record sample_of(struct scene *s, const struct arguments *a)
{
	const struct regs_arch *arch = regs_arch_native();
#ifdef __x86_64__
	static const uint8_t dwarf[5] = {5, 4, 1, 2, 8};
#else
	static const uint8_t dwarf[5] = {0, 1, 2, 3, 4};
#endif
	const uint64_t words[5] = {a->key, a->slot, a->seq, a->size_bytes, a->period_bytes};
	size_t count = 0;
	for (size_t bit = 0; bit < 64; bit++) {
		if (!(arch->perf_mask >> bit & 1))
			continue;
		uint64_t word = bit == arch->perf_pc ? (uintptr_t)some_code : 0x7f0000001000;
		for (size_t i = 0; i < 5; i++)
			if (bit < arch->perf_count && arch->perf_to_dwarf[bit] == dwarf[i])
				word = words[i];
		s->regs[count++] = word;
	}
	static const unsigned char stack[256];
	return (struct record){.kind = RECORD_SAMPLE,
	    .pid = 1,
	    .tid = 77,
	    .regs_abi = PERF_SAMPLE_REGS_ABI_64,
	    .regs = s->regs,
	    .regs_count = count,
	    .stack = stack,
	    .stack_bytes = sizeof(stack),
	    .stack_want = sizeof(stack)};
}

static void take(struct scene *s, const struct arguments *a)
{
	const struct record record = sample_of(s, a);

	intake_record(&s->intake, &record);
}

static void a_sample_goes_to_the_place_that_its_key_names(void **state)
{
	struct scene *s = *state;

	take(s, &(const struct arguments){KEY | 1, 5, 9, 100, 1});
	assert_int_equal(samples_of(s, 0), 0);
	assert_int_equal(samples_of(s, 1), 1);
	uint32_t site = heap_site_of(s->process[1]->heap, 5, 9, 0);
	assert_int_not_equal(site, HEAP_NO_SITE);
	assert_int_equal(heap_site(s->process[1]->heap, site)->key.tid, 77);
	assert_int_equal(heap_site(s->process[1]->heap, site)->sums.bytes_q8, 100 << WEIGHT_BYTES_SHIFT);
	assert_false(heap_site(s->process[1]->heap, site)->key.mapped);
	assert_int_equal(s->process[1]->counters.by_breakpoint, 1);
	take(s, &(const struct arguments){KEY, 6 | REGION_TRIGGER_MMAP, 1, 4096, 1});
	site = heap_site_of(s->process[0]->heap, 6, 1, 0);
	assert_int_not_equal(site, HEAP_NO_SITE);
	assert_true(heap_site(s->process[0]->heap, site)->key.mapped);
	assert_int_equal(s->intake.taken, 2);
	assert_int_equal(s->intake.bad, 0);
}

static void two_events_that_saw_the_same_count_once(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < 2; i++)
		take(s, &(const struct arguments){KEY, 5, 9, 100, 1});
	assert_int_equal(samples_of(s, 0), 1);
	assert_int_equal(heap_total(s->process[0]->heap).bytes_q8, 100 << WEIGHT_BYTES_SHIFT);
	assert_int_equal(s->process[0]->counters.taken, 2); /* both have come */
	assert_int_equal(s->process[0]->counters.by_breakpoint, 1);
	/* The next block of that slot, and the same number in another place, are others. */
	take(s, &(const struct arguments){KEY, 5, 10, 100, 1});
	take(s, &(const struct arguments){KEY | 1, 5, 9, 100, 1});
	assert_int_equal(samples_of(s, 0), 2);
	assert_int_equal(samples_of(s, 1), 1);
}

static void strays_and_lies_are_nobodys(void **state)
{
	struct scene *s = *state;

	take(s, &(const struct arguments){KEY + 0x10000, 5, 9, 100, 1}); /* another session's */
	take(s, &(const struct arguments){KEY | 2, 5, 9, 100, 1});       /* a place that is free */
	take(s, &(const struct arguments){KEY | REGION_PLACES, 5, 9, 100, 1});
	take(s, &(const struct arguments){KEY | 0xffff, 5, 9, 100, 1});
	uint64_t bad = s->intake.bad;
	s->process[1]->target.closed = true;
	take(s, &(const struct arguments){KEY | 1, 5, 9, 100, 1});
	assert_int_equal(s->intake.bad, bad + 1);
	s->run->life.state = RUN_CLAIMED;
	take(s, &(const struct arguments){KEY, 5, 9, 100, 1});
	assert_int_equal(s->intake.taken, 0);
	s->run->life.state = RUN_READY;
	/* No slot, and one that cannot be. */
	take(s, &(const struct arguments){KEY, REGION_NO_SLOT, 1, 100, 1});
	take(s, &(const struct arguments){KEY, UINT64_MAX, 2, 100, 1});
	take(s, &(const struct arguments){KEY, UINT32_MAX - 1, 3, UINT64_MAX, 0});
	assert_int_equal(s->intake.taken, 3);
}

static void registers_that_are_not_there(void **state)
{
	struct scene *s = *state;
	struct record record = sample_of(s, &(const struct arguments){KEY, 5, 9, 100, 1});

	record.regs_abi = PERF_SAMPLE_REGS_ABI_32;
	intake_record(&s->intake, &record);
	record.regs_abi = PERF_SAMPLE_REGS_ABI_64;
	record.regs_count--;
	intake_record(&s->intake, &record);
	assert_int_equal(s->intake.bad, 2);
	assert_int_equal(s->intake.taken, 0);
}

static bool find_it(void *context)
{
	struct scene *s = context;
	bool found = s->waiting && !program_run_is_ready(s->waiting);

	if (found)
		s->waiting->life.state = RUN_READY;
	return found;
}

static void a_sample_may_come_before_its_image_was_seen(void **state)
{
	struct scene *s = *state;

	s->run->life.state = RUN_CLAIMED;
	s->waiting = s->run;
	s->intake.find_runs = find_it;
	s->intake.context = s;
	take(s, &(const struct arguments){KEY, 5, 9, 100, 1});
	assert_int_equal(samples_of(s, 0), 1);
	take(s, &(const struct arguments){KEY + 0x10000, 5, 9, 100, 1});
	assert_int_equal(s->intake.taken, 1);
}

static void what_the_kernel_lost_is_counted(void **state)
{
	struct scene *s = *state;

	intake_record(&s->intake, &(const struct record){.kind = RECORD_LOST, .lost = 7});
	intake_record(&s->intake, &(const struct record){.kind = RECORD_LOST, .lost = 4});
	intake_record(&s->intake, &(const struct record){.kind = RECORD_OTHER, .lost = 100});
	assert_int_equal(s->intake.ring_lost, 11);
}

/* ---- buffers */

/* The hook has copied a stack. */
static struct region_buffer *copy(
    struct scene *s, uint32_t number, uint32_t place, uint64_t seq, uint64_t time_ns)
{
	struct region_buffer *buffer = fixture_buffer(s->region, 0, number);

	memset(buffer, 0, sizeof(*buffer));
	fixture_take_buffer(s->region, 0, number);
	buffer->place = place;
	buffer->sample.seq = seq;
	buffer->sample.slot = (uint32_t)seq;
	buffer->sample.size_bytes = 64;
	buffer->sample.period_bytes = 1;
	buffer->sample.time_ns = time_ns;
	buffer->sample.tid = 88;
	buffer->stack_bytes = 512;
	for (int i = 0; i < BUFFER_REGS; i++)
		buffer->regs[i] = 0x7f0000001000;
	atomic_store(&buffer->word, buffer_word(BUFFER_FULL, place));
	atomic_fetch_add(&region_header(s->region)->copied, 1);
	return buffer;
}

static void copies_are_taken_up_to_a_time(void **state)
{
	struct scene *s = *state;

	copy(s, 0, 0, 1, NOW_NS - 10);
	copy(s, 1, 1, 2, NOW_NS + 10);
	assert_int_equal(intake_buffers(&s->intake, s->run, NOW_NS), 1);
	assert_int_equal(samples_of(s, 0), 1);
	assert_int_equal(samples_of(s, 1), 0);
	assert_int_equal(intake_buffers(&s->intake, s->run, NOW_NS), 0);
	/* What was left is not forgotten, though nothing has come since. */
	assert_int_equal(intake_buffers(&s->intake, s->run, NOW_NS + 11), 1);
	assert_int_equal(samples_of(s, 1), 1);
	assert_int_equal(s->process[1]->counters.copied, 1);
	assert_int_equal(
	    heap_site(s->process[1]->heap, heap_site_of(s->process[1]->heap, 2, 2, 0))->key.tid, 88);
}

/* Nor can a hostile one keep its buffers for ever. */
static void a_time_in_the_far_future_does_not_hold_it_up(void **state)
{
	struct scene *s = *state;

	copy(s, 0, 0, 1, UINT64_MAX);
	copy(s, 1, 0, 2, NOW_NS + 5000000000u);
	assert_int_equal(intake_buffers(&s->intake, s->run, NOW_NS), 2);
}

static void a_hostile_buffer(void **state)
{
	struct scene *s = *state;

	copy(s, 0, 2, 1, 1); /* nobody's place */
	copy(s, 1, UINT32_MAX, 1, 1);
	copy(s, 2, 0, 1, 1)->stack_bytes = UINT32_MAX; /* more than the buffer has */
	copy(s, 3, 0, 2, 1)->sample.slot = UINT32_MAX - 1;
	copy(s, 4, 0, 3, 1)->sample.period_bytes = 0;
	copy(s, 5, 0, 4, 1)->sample.size_bytes = UINT64_MAX;
	copy(s, 6, 0, 5, 1)->flags = UINT16_MAX;
	s->process[1]->target.closed = true;
	copy(s, 7, 1, 6, 1);
	assert_int_equal(intake_buffers(&s->intake, s->run, NOW_NS), 8); /* all given back */
	assert_int_equal(s->intake.bad, 3);
	assert_int_equal(s->process[0]->counters.taken, 5);
	uint64_t random = 88172645463325252u;
	for (uint32_t n = 0; n < 2000; n++) {
		struct region_buffer *buffer = copy(s, n % 64, 0, n, 1);

		for (size_t i = 4; i < sizeof(*buffer); i += 4) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			memcpy((unsigned char *)buffer + i, &(uint32_t){(uint32_t)(random >> 20)}, 4);
		}
		buffer->place = n % 3;
		assert_int_equal(intake_buffers(&s->intake, s->run, UINT64_MAX), 1);
	}
}

/* Of a walk whose stack has no number here, or with more frames than any has: nothing is believed. */
static void frames_that_nobody_asked_for_are_nobodys(void **state)
{
	struct scene *s = *state;
	const uint32_t bytes[] = {0, 8, 512, UINT32_MAX};

	for (uint32_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		struct region_buffer *buffer = copy(s, i, 0, i, 1);

		buffer->content = BUFFER_FRAMES;
		buffer->sample.stack = 1 + i;
		buffer->stack_bytes = bytes[i];
	}
	assert_int_equal(intake_buffers(&s->intake, s->run, NOW_NS), sizeof(bytes) / sizeof(bytes[0]));
	assert_int_equal(samples_of(s, 0), 0);
	assert_int_equal(s->intake.taken, 0);
}

/*
 * A frame pointer leads to what lies `at` bytes up the stack: the caller's frame, if that is part of the
 * copy. Whatever length the buffer claims, what lies behind it is not: the next buffer, with another
 * thread's stack, where the same words wait.
 */
static void a_stack_ends_with_its_buffer(void **state)
{
	enum { CODE = 0x10000000, STACK = 0x20000000, FRAME_BYTES = 32 };
	const uint32_t room = buffer_class[0].bytes - sizeof(struct region_buffer);

	const struct {
		uint32_t claimed_bytes, at, frames;
		bool cut;
	} stacks[] = {{room, 64, 2, false}, {room, room - FRAME_BYTES, 2, false}, {96, 64, 2, false},
	    {room + 1, room - FRAME_BYTES, 2, false}, {UINT32_MAX, room - FRAME_BYTES, 2, false},
	    {95, 64, 2, true}, {UINT32_MAX, room - FRAME_BYTES + 8, 2, true}, {79, 64, 1, true},
	    {0, 0, 1, true}, {room + 8, room - 8, 1, true}, {UINT32_MAX, room, 1, true},
	    {UINT32_MAX, room + sizeof(struct region_buffer) + 64, 1, true}};
	const struct regs_arch *arch = regs_arch_native();
	struct scene *s = *state;
	const struct process *process = s->process[0];
	const struct map_range made_at_run_time = {.start = CODE, .len = 4096, .prot = PROT_READ | PROT_EXEC};
	assert_int_equal(maps_add(process->target.maps, &made_at_run_time), 0);
	for (uint32_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		const uint64_t frame = STACK + stacks[i].at;
		const uint64_t words[] = {frame + 16, CODE + 8, 0, 0}; /* the caller, and that it has none */
		struct region_buffer *buffer = copy(s, 3, 0, i, 1);

		memset(buffer + 1, 0xff, 2 * buffer_class[0].bytes - sizeof(*buffer));
		memcpy((unsigned char *)(buffer + 1) + stacks[i].at, words, sizeof(words));
		buffer->stack_bytes = stacks[i].claimed_bytes;
		for (uint32_t k = 0; k < arch->copied_count; k++)
			buffer->regs[k] = arch->copied[k] == arch->fp ? frame
			    : arch->copied[k] == arch->sp             ? STACK
			                                              : 0;
		buffer->regs[arch->copied_count] = CODE;
		enum unwind_outcome outcome = stacks[i].cut ? UNWIND_TRUNCATED : UNWIND_COMPLETE;
		uint64_t before = process->counters.outcome[outcome];
		assert_int_equal(intake_buffers(&s->intake, s->run, NOW_NS), 1);
		assert_int_equal(process->counters.outcome[outcome], before + 1);
		uint32_t stack = heap_site(process->heap, heap_site_of(process->heap, i, i, 0))->key.stack,
		         depth = 0;
		for (; stack != STACK_ROOT; depth++)
			stack = stacks_node(process->target.stacks, stack)->outer;
		/* and the markers: of the end, and of a caller that was found by frame pointer */
		assert_int_equal(depth, stacks[i].frames + stacks[i].cut + (stacks[i].frames > 1));
	}
}

/* ---- programs that are executed and never seen */

static void an_exec_is_noted_unless_it_began_this_program(void **state)
{
	struct scene *s = *state;
	struct process *process = s->process[0];

	region_place(s->region, 0)->start_ns = NOW_NS;
	region_header(s->region)->clock_id = CLOCK_MONOTONIC;
	struct record record = {
	    .kind = RECORD_COMM, .pid = 0, .exec = true, .time_ns = NOW_NS, .path = "old"};
	intake_record(&s->intake, &record);
	assert_string_equal(process->target.unprofiled, "");
	record.time_ns++;
	record.exec = false;
	intake_record(&s->intake, &record); /* a thread's name */
	assert_string_equal(process->target.unprofiled, "");
	record.exec = true;
	record.path = "a\x1b[m\xff";
	intake_record(&s->intake, &record);
	assert_memory_equal(process->target.unprofiled, "executed a?[m?, which is not profiled: ", 39);
}

/* A look may notice an exec before the records from before the exec are read. */
static void mappings_from_before_an_exec_are_taken(void **state)
{
	struct scene *s = *state;
	struct process *process = s->process[0];
	const struct record mapping = {.kind = RECORD_MMAP,
	    .pid = 0,
	    .start = 0x7000000000,
	    .length = 0x1000,
	    .protection = PROT_READ | PROT_EXEC,
	    .path = "/no/such/file"};
	struct record other = mapping;
	struct record exec = {
	    .kind = RECORD_COMM, .pid = 0, .exec = true, .time_ns = NOW_NS + 1, .path = "other"};

	region_place(s->region, 0)->start_ns = NOW_NS;
	region_header(s->region)->clock_id = CLOCK_MONOTONIC;
	strcpy(process->target.unprofiled, "executed other" EXECUTED_UNSEEN);
	intake_record(&s->intake, &mapping);
	assert_non_null(maps_find(process->target.maps, mapping.start));
	intake_record(&s->intake, &exec);
	other.start += 0x10000;
	intake_record(&s->intake, &other);
	assert_null(maps_find(process->target.maps, other.start));
}

/* ---- bounds */

static void take_as(struct scene *s, uint32_t tid, const struct arguments *a)
{
	struct record record = sample_of(s, a);

	record.tid = tid; /* a row of its own */
	intake_record(&s->intake, &record);
}

/* A target may invent rows without end; another's room is not its. */
static void books_that_would_grow_without_end(void **state)
{
	struct scene *s = *state;
	enum { BOUND_BYTES = 4 << 20, ROWS = 100000 };

	s->memory.max_bytes = BOUND_BYTES;
	for (uint32_t i = 0; i < ROWS; i++)
		take_as(s, i + 1, &(const struct arguments){KEY, REGION_NO_SLOT, i, 100, 1});
	const struct process *hog = s->process[0], *other = s->process[1];
	uint64_t refused = s->memory.refused;
	assert_true(refused > 0);
	assert_int_equal(hog->counters.no_room, refused);
	assert_int_equal(samples_of(s, 0), ROWS - refused);
	const struct tally counted = {
	    ROWS, ROWS * UINT64_C(100) << WEIGHT_BYTES_SHIFT, (uint64_t)ROWS << WEIGHT_OBJECTS_SHIFT};
	const struct tally lost = heap_lost(hog->heap, counted);
	assert_int_equal(lost.samples, refused);
	assert_int_equal(lost.bytes_q8, refused * 100 << WEIGHT_BYTES_SHIFT);
	assert_true(s->memory.held_bytes < BOUND_BYTES);
	assert_int_equal(s->memory.held_bytes, hog->share.held_bytes + other->share.held_bytes);
	/* rows that are there take samples as before */
	take_as(s, 1, &(const struct arguments){KEY, REGION_NO_SLOT, ROWS, 100, 1});
	assert_int_equal(samples_of(s, 0), ROWS - refused + 1);
	for (uint32_t i = 0; i < 100; i++)
		take_as(s, i + 1, &(const struct arguments){KEY | 1, i, i, 100, 1});
	assert_int_equal(samples_of(s, 1), 100);
	assert_int_equal(other->counters.no_room, 0);
	assert_int_equal(s->memory.refused, refused);
	program_run_free_process(s->process[0]);
	assert_int_equal(s->memory.held_bytes, other->share.held_bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(a_sample_goes_to_the_place_that_its_key_names),
	    TEST(two_events_that_saw_the_same_count_once),
	    TEST(strays_and_lies_are_nobodys),
	    TEST(registers_that_are_not_there),
	    TEST(a_sample_may_come_before_its_image_was_seen),
	    TEST(what_the_kernel_lost_is_counted),
	    TEST(copies_are_taken_up_to_a_time),
	    TEST(a_time_in_the_far_future_does_not_hold_it_up),
	    TEST(a_hostile_buffer),
	    TEST(frames_that_nobody_asked_for_are_nobodys),
	    TEST(a_stack_ends_with_its_buffer),
	    TEST(an_exec_is_noted_unless_it_began_this_program),
	    TEST(mappings_from_before_an_exec_are_taken),
	    TEST(books_that_would_grow_without_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of stacks in a region: one sampler writes it, the next one reads it, of the same address space
 * and of one that has changed; what is left over from another process; and what a hostile program run
 * makes of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/books/stack_log.h"
#include "tests/unit/region_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACE = 1, SEGMENTS = 2, PAGE = 4096 };

struct scene {
	struct region region;
	struct modules *store;
	struct maps *maps;
	struct stacks *before, *after; /* of the sampler that wrote, and of the next */
	struct stack_log log, next;
};

static void inner_code(void)
{
	__asm__ volatile("");
}

static void outer_code(void)
{
	__asm__ volatile("nop");
}

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	*state = s;
	fixture_open(&s->region, SEGMENTS * REGION_SEGMENT_SLOTS);
	s->store = modules_new(16);
	s->maps = maps_new(s->store, getpid(), true);
	assert_int_equal(maps_read_proc(s->maps), 0);
	s->before = stacks_new();
	s->after = stacks_new();
	stack_log_init(&s->log, &s->region, PLACE, s->before);
	stack_log_init(&s->next, &s->region, PLACE, s->after);
	return 0;
}

static int close_scene(void **state)
{
	struct scene *s = *state;

	stacks_unref(s->before);
	stacks_unref(s->after);
	maps_free(s->maps);
	modules_free(s->store);
	region_close(&s->region);
	free(s);
	return 0;
}

static struct unwind_frame frame_at(struct scene *s, uint64_t pc)
{
	const struct map *map = maps_module(s->maps, pc);
	struct unwind_frame frame = {
	    .pc = pc, .vaddr = pc, .kind = MAP_KIND_SPECIAL, .step = UNWIND_STEP_CFI};

	if (map) {
		frame.kind = (uint8_t)map->kind;
		frame.module = map->has_bias ? map->module : NULL;
		frame.vaddr = map->has_bias ? pc - map->bias : pc;
	}
	return frame;
}

/* The stack inner < outer < marker, of the sampler that writes. */
static uint32_t stack_of(struct scene *s, uint64_t inner, uint64_t outer, const char *marker)
{
	const struct unwind_frame frames[] = {frame_at(s, inner), frame_at(s, outer)};
	uint32_t stack = stacks_intern(s->before, frames, 2, marker, s->maps);

	assert_int_not_equal(stack, UINT32_MAX);
	return stack;
}

static uint32_t known_stack(struct scene *s)
{
	return stack_of(s, (uintptr_t)inner_code, (uintptr_t)outer_code, unwind_marker(UNWIND_TRUNCATED));
}

/* What the next sampler finds for a block; walked: the number of its stack. */
static uint32_t find(struct scene *s, uint32_t slot, uint64_t seq, uint32_t walked)
{
	struct stack_log_reader reader;
	const struct slot_copy block = {.seq = seq, .sample = {.stack = walked}};
	uint32_t stack = UINT32_MAX;

	if (stack_log_open(&reader, &s->next, s->maps) == 0)
		stack = stack_log_find(&reader, slot, &block);
	stack_log_close(&reader);
	return stack;
}

static void assert_known(struct scene *s, uint32_t stack)
{
	assert_int_not_equal(stack, UINT32_MAX);
	const struct stack_node *node = stacks_node(s->after, stack);
	const struct stack_frame *frame = stacks_frame(s->after, node->frame);
	const struct stack_mapping *mapping = stacks_mapping(s->after, frame->mapping);
	const struct unwind_frame same = frame_at(s, (uintptr_t)inner_code);
	assert_int_equal(frame->pc, same.pc);
	assert_int_equal(frame->vaddr, same.vaddr);
	assert_non_null(same.module);
	assert_ptr_equal(mapping->module, same.module);
	node = stacks_node(s->after, node->outer);
	assert_int_equal(stacks_frame(s->after, node->frame)->pc, (uintptr_t)outer_code);
	node = stacks_node(s->after, node->outer);
	assert_string_equal(stacks_frame(s->after, node->frame)->marker, unwind_marker(UNWIND_TRUNCATED));
	assert_int_equal(node->outer, STACK_ROOT);
}

static void the_next_sampler_finds_the_stacks(void **state)
{
	struct scene *s = *state;

	assert_int_equal(find(s, 7, 40, 0), UINT32_MAX);
	(void)stack_of(s, (uintptr_t)outer_code, (uintptr_t)inner_code, NULL); /* so that numbers differ */
	stack_log_block(&s->log, 7, 40, known_stack(s));
	stack_log_walked(&s->log, 12, known_stack(s));
	assert_known(s, find(s, 7, 40, 0));
	assert_known(s, find(s, 8, 41, 12));
	assert_int_equal(find(s, 7, 41, 0), UINT32_MAX); /* another block */
	assert_int_equal(find(s, 8, 41, 0), UINT32_MAX);
	assert_int_equal(find(s, 8, 41, 13), UINT32_MAX);
	assert_int_equal(find(s, SEGMENTS * REGION_SEGMENT_SLOTS, 40, 0), UINT32_MAX);
	/* The memory that it takes is by segments, wherever in the region these are. */
	const uint64_t bytes = stack_log_bytes(&s->log, 1);
	stack_log_block(&s->log, SEGMENTS * REGION_SEGMENT_SLOTS - 1, 42, known_stack(s));
	assert_int_equal(stack_log_bytes(&s->log, 1), bytes);
}

static void every_marker_is_known_to_the_next(void **state)
{
	struct scene *s = *state;

	for (uint32_t i = 0; i < UNWIND_COUNTS; i++) {
		const char *marker = unwind_marker((enum unwind_outcome)i);

		if (!marker)
			continue;
		stack_log_block(&s->log, 7, 40 + i, stacks_intern(s->before, NULL, 0, marker, s->maps));
		const uint32_t stack = find(s, 7, 40 + i, 0);
		if (stack == UINT32_MAX)
			fail_msg("%s: not found", marker);
		assert_string_equal(
		    stacks_frame(s->after, stacks_node(s->after, stack)->frame)->marker, marker);
	}
}

static void an_older_block_that_comes_late_changes_nothing(void **state)
{
	struct scene *s = *state;

	stack_log_block(&s->log, 7, 40, known_stack(s));
	stack_log_block(&s->log, 7, 39, stack_of(s, (uintptr_t)outer_code, (uintptr_t)outer_code, NULL));
	assert_known(s, find(s, 7, 40, 0));
	assert_int_equal(find(s, 7, 39, 0), UINT32_MAX);
}

static void nothing_is_written_while_it_waits(void **state)
{
	struct scene *s = *state;

	stack_log_block(&s->log, 7, 40, known_stack(s));
	s->next.waits = true;
	stack_log_block(&s->next, 7, 41, STACK_ROOT);
	stack_log_walked(&s->next, 12, STACK_ROOT);
	assert_known(s, find(s, 7, 40, 0));
	stack_log_renew(&s->next);
	assert_int_equal(find(s, 7, 40, 0), UINT32_MAX);
}

static void another_process_begins_with_nothing(void **state)
{
	struct scene *s = *state;

	stack_log_block(&s->log, 7, 40, known_stack(s));
	region_release_place(&s->region, PLACE);
	assert_int_equal(find(s, 7, 40, 0), UINT32_MAX);
	stack_log_init(&s->log, &s->region, PLACE, s->before);
	stack_log_block(&s->log, 8, 2, known_stack(s));
	assert_known(s, find(s, 8, 2, 0));
	assert_int_equal(find(s, 7, 40, 0), UINT32_MAX);
}

static void only_so_many_places_have_one(void **state)
{
	struct scene *s = *state;

	stack_log_init(&s->log, &s->region, STACK_LOG_PLACES, s->before);
	stack_log_init(&s->next, &s->region, STACK_LOG_PLACES, s->after);
	stack_log_block(&s->log, 7, 40, known_stack(s));
	stack_log_walked(&s->log, 12, known_stack(s));
	stack_log_renew(&s->log);
	assert_int_equal(find(s, 7, 40, 12), UINT32_MAX);
}

static void code_that_is_another_by_now_has_no_name(void **state)
{
	struct scene *s = *state;
	char *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_int_equal(maps_read_proc(s->maps), 0);
	stack_log_block(&s->log, 7, 40, stack_of(s, (uintptr_t)code + 8, (uintptr_t)outer_code, NULL));
	stack_log_block(&s->log, 8, 41, known_stack(s));
	assert_int_not_equal(find(s, 7, 40, 0), UINT32_MAX);
	FILE *exe = fopen("/proc/self/exe", "r");
	assert_non_null(exe);
	assert_ptr_equal(
	    mmap(code, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fileno(exe), 0), code);
	fclose(exe);
	assert_int_equal(maps_read_proc(s->maps), 0);
	assert_int_equal(find(s, 7, 40, 0), UINT32_MAX);
	assert_known(s, find(s, 8, 41, 0));
	munmap(code, PAGE);
}

static void more_frames_and_nodes_than_there_is_room_for(void **state)
{
	struct scene *s = *state;
	uint32_t stack = STACK_ROOT;
	const struct stack_mapping mapping = {.start = PAGE, .end = 2 * PAGE, .kind = MAP_KIND_SPECIAL};

	for (uint64_t i = 0; i < STACK_LOG_NODES + 10; i++) {
		const struct stack_frame frame = {.pc = PAGE + i % PAGE, .vaddr = PAGE + i % PAGE};

		stack = stacks_add(s->before, stack, &frame, &mapping);
		if (i == STACK_LOG_NODES - 100)
			stack_log_block(&s->log, 7, 40, stack);
	}
	stack_log_block(&s->log, 8, 41, stack);
	uint32_t found = find(s, 7, 40, 0), depth = 0;
	for (; found != STACK_ROOT; found = stacks_node(s->after, found)->outer)
		depth++;
	assert_int_equal(depth, STACK_LOG_NODES - 99);
	assert_int_equal(find(s, 8, 41, 0), UINT32_MAX);
}

static void a_hostile_log_is_refused(void **state)
{
	struct scene *s = *state;
	struct stack_log_place *place = region_stack_log(&s->region, PLACE);

	stack_log_block(&s->log, 7, 40, known_stack(s));
	const uint32_t top = known_stack(s), frames = place->frame_count, nodes = place->node_count;
	const uint32_t counts[][2] = {{UINT32_MAX, nodes}, {STACK_LOG_FRAMES + 1, nodes}, {0, nodes},
	    {1, nodes}, {frames, UINT32_MAX}, {frames, STACK_LOG_NODES + 1}, {frames, 0}, {frames, 1},
	    {frames, top}};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		place->frame_count = counts[i][0];
		place->node_count = counts[i][1];
		assert_int_equal(find(s, 7, 40, 0), UINT32_MAX);
	}
	place->frame_count = frames;
	place->node_count = nodes;
	assert_known(s, find(s, 7, 40, 0));
	const struct stack_log_node good = place->nodes[top];
	const struct stack_log_node bad[] = {{top, good.frame}, {top + 1, good.frame},
	    {UINT32_MAX, good.frame}, {good.outer, frames}, {good.outer, UINT32_MAX}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		place->nodes[top] = bad[i];
		assert_int_equal(find(s, 7, 40, 0), UINT32_MAX);
	}
	place->nodes[top] = good;
	struct stack_log_slot *slot = region_stack_log_slot(&s->region, 7);
	for (uint32_t node = nodes; node - 1 < UINT32_MAX - 1;
	     node = node < nodes + 3 ? node + 1 : UINT32_MAX) {
		slot->stack.node = node;
		assert_int_equal(find(s, 7, 40, 0), UINT32_MAX);
	}
	slot->stack.node = top;
	for (uint32_t i = 0; i < frames; i++)
		if (place->frames[i].mapping == STACK_LOG_MARKER)
			place->frames[i].pc = UINT64_MAX;
	assert_int_equal(find(s, 7, 40, 0), UINT32_MAX);
}

/* An offer that says that an earlier sampler has logged all that there can be. */
static void a_log_that_nobody_has_written_takes_no_memory(void **state)
{
	struct scene *s = *state;
	struct stack_log_place *place = region_stack_log(&s->region, PLACE);
	struct stack_log_reader reader;
	struct stat before, after;

	s->region.sparse = true;
	atomic_store(&place->epoch, 1);
	atomic_store(&place->node_count, STACK_LOG_NODES);
	atomic_store(&place->frame_count, STACK_LOG_FRAMES);
	assert_int_equal(fstat(s->region.fd, &before), 0);
	assert_int_equal(stack_log_open(&reader, &s->next, s->maps), -ENOENT);
	assert_int_equal(fstat(s->region.fd, &after), 0);
	assert_int_equal(after.st_blocks, before.st_blocks);
	/* a log that was written is read, but no entry of a slot or number that was not */
	uint32_t stack = known_stack(s);
	stack_log_block(&s->log, 0, 7, stack);
	assert_known(s, find(s, 0, 7, 0));
	assert_int_equal(fstat(s->region.fd, &before), 0);
	assert_int_equal(find(s, REGION_SEGMENT_SLOTS, 8, 9000), UINT32_MAX);
	assert_int_equal(fstat(s->region.fd, &after), 0);
	assert_int_equal(after.st_blocks, before.st_blocks);
	s->region.sparse = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_next_sampler_finds_the_stacks, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(
	        an_older_block_that_comes_late_changes_nothing, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(every_marker_is_known_to_the_next, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(nothing_is_written_while_it_waits, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(another_process_begins_with_nothing, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(only_so_many_places_have_one, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(code_that_is_another_by_now_has_no_name, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(
	        more_frames_and_nodes_than_there_is_room_for, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(a_hostile_log_is_refused, open_scene, close_scene),
	    cmocka_unit_test_setup_teardown(
	        a_log_that_nobody_has_written_takes_no_memory, open_scene, close_scene),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

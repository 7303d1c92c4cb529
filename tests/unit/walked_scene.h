/* SPDX-License-Identifier: Apache-2.0 */
/* A program run of two processes, and stacks of this very program, whose rows libdw reads. */
#ifndef TESTS_UNIT_WALKED_SCENE_H
#define TESTS_UNIT_WALKED_SCENE_H

#include "pprof/text/clock.h"
#include "proto/buffer.h"
#include "proto/walk.h"
#include "sampler/books/drain.h"
#include "sampler/books/program_run.h"
#include "sampler/books/walked.h"
#include "sampler/intake/region_offer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

enum { FRAMES = 3, LEARNED_NS = 1000 };

static struct modules *store;
static struct program_run *run;
static struct process *process[2];
static struct unwind_frame frames[FRAMES];
static struct walk_result walk = {frames, FRAMES, UNWIND_COMPLETE, NULL, 0};

/* Two frames of this very program, whose rows libdw reads; the innermost is in another file, as the library's
 * is. */
static inline void make_frames(struct maps *maps)
{
	const uintptr_t where[FRAMES] = {(uintptr_t)qsort, (uintptr_t)walked_learn, (uintptr_t)maps_new};

	for (int i = 0; i < FRAMES; i++) {
		uint64_t pc = where[i] + 16;
		const struct map *map = maps_module(maps, pc);

		assert_non_null(map);
		assert_non_null(map->module);
		frames[i] = (struct unwind_frame){.pc = pc,
		    .vaddr = pc - map->bias,
		    .module = map->module,
		    .kind = (uint8_t)map->kind,
		    .step = i ? UNWIND_STEP_CFI : UNWIND_STEP_FIRST,
		    .activation = i == 0};
	}
}

static inline int begin(void **state)
{
	(void)state;
	struct region *region = malloc(sizeof(*region));
	store = modules_new(16);
	const struct region_options options = {.period_bytes = 1,
	    .dump_bytes = 8192,
	    .clock_id = 1,
	    .live_max = 1024,
	    .mode = REGION_MODE_COPY,
	    .walk = 1};
	assert_int_equal(region_open(region, 1, 0x10000, &options), 0);
	run = program_run_new(region, 1);
	run->life.state = RUN_READY;
	static struct books books;
	run->books = &books;
	for (uint32_t i = 0; i < 2; i++) {
		region_place(region, i)->pid = (uint32_t)getpid();
		atomic_store(&region_place(region, i)->state, PLACE_READY);
		process[i] = program_run_meet(run, i, store);
		assert_non_null(process[i]);
	}
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	for (int i = 2; i-- > 0;)
		if (process[i])
			program_run_free_process(process[i]);
	walked_free(run);
	program_run_free(run);
	modules_free(store);
	return 0;
}

static inline size_t rows(const struct walk_row *table, size_t entries)
{
	size_t count = 0;

	for (size_t i = 0; i < entries; i++)
		count += table[i].pc != 0;
	return count;
}

static inline struct walk_area *area(void)
{
	return region_walk(run->region);
}

static inline uint32_t learn(uint32_t place, uint64_t time_ns)
{
	struct maps *maps = maps_new(store, getpid(), true);

	assert_int_equal(maps_read_proc(maps), 0);
	make_frames(maps);
	walk = (struct walk_result){frames, FRAMES, UNWIND_COMPLETE, process[place]->target.maps, 0};
	uint32_t stack = stacks_intern(process[place]->target.stacks, frames, FRAMES, NULL, maps);
	walked_learn(process[place], &walk, stack, time_ns);
	maps_free(maps);
	return stack;
}

static inline int dumped_in(uint32_t place, uint32_t number, uint32_t stack)
{
	const struct dumped_walk with = {
	    .walk = &walk, .number = number, .stack = stack, .time_ns = UINT64_MAX};

	return walked_dumped(process[place], &with);
}

static inline int dumped(uint32_t number, uint32_t stack)
{
	return dumped_in(0, number, stack);
}

/* Frames of these rows that no dump has shown yet: without the outermost. */
static inline struct maps *other_frames(void)
{
	struct maps *maps = maps_new(store, getpid(), true);

	assert_int_equal(maps_read_proc(maps), 0);
	make_frames(maps);
	walk = (struct walk_result){frames, 2, UNWIND_COMPLETE, process[0]->target.maps, 0};
	return maps;
}

static inline uint32_t other_stack_in(uint32_t place)
{
	struct maps *maps = other_frames();
	uint32_t stack = stacks_intern(process[place]->target.stacks, frames, 2, NULL, maps);

	maps_free(maps);
	return stack;
}

static inline uint32_t other_stack(void)
{
	return other_stack_in(0);
}

static inline const struct stack_frame *frame_of(uint32_t place, uint32_t stack)
{
	const struct stacks *stacks = process[place]->target.stacks;

	return stacks_frame(stacks, stacks_node(stacks, stack)->frame);
}

static inline uint32_t nodes(void)
{
	return stacks_node_count(process[0]->target.stacks);
}

/* The hook of that place walks it, and takes `samples` samples. generation: as in proto/walk.h */
static inline uint32_t take_samples_in(uint32_t place, uint64_t generation, uint64_t samples)
{
	uint64_t hash = walk_hash_end(walk_hash_step(WALK_HASH_BEGIN, frames[1].pc + 1), generation);
	uint32_t number = walk_number_take(&area()->numbers, hash);
	struct walk_count *count = &area()->counts[place].count[number];

	assert_int_not_equal(number, 0);
	area()->numbers.of[number].state = WALK_NUMBER_ASKED;
	count->samples += samples;
	count->bytes_q8 += samples << WEIGHT_BYTES_SHIFT;
	count->objects_q16 += samples << WEIGHT_OBJECTS_SHIFT;
	area()->counts[place].changed[number / 64] |= 1ull << number % 64;
	region_place(run->region, place)->walked += samples;
	return number;
}

static inline uint32_t take_samples(uint64_t generation, uint64_t samples)
{
	return take_samples_in(0, generation, samples);
}

static inline uint64_t in_the_books(void)
{
	return heap_total(process[0]->heap).samples;
}

static inline uint32_t state_of(uint32_t number)
{
	return area()->numbers.of[number].state;
}

/* As the library lists them: this program has been there from the start. */
static inline void list_start_files(void)
{
	region_header(run->region)->start_files = 1;
	region_header(run->region)->start_file[0] = (struct region_range){4096, UINT64_MAX};
}

/* Samples wait until one dump has told what their number is. */

#endif

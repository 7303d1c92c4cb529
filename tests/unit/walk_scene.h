/* SPDX-License-Identifier: Apache-2.0 */
/* A stack made by hand, between two pages that cannot be read, and the tables by which the hook walks it. */
#ifndef TESTS_UNIT_WALK_SCENE_H
#define TESTS_UNIT_WALK_SCENE_H

#include "preload/claim.h"
#include "preload/place.h"
#include "preload/sample.h"
#include "preload/sample_clock.h"
#include "preload/thread.h"
#include "preload/walk.h"
#include "sampler/intake/region.h"
#include "sampler/intake/walk_table.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

enum { WORDS = 2048, WORD_BYTES = sizeof(uintptr_t) };
enum { MAIN = 0x401000, MIDDLE = 0x402000, LEAF = 0x403000, PLUGIN = 0x900000 };

static struct region region;
static struct walk_table table;
static uint64_t left[WALK_DRAIN_WORDS];
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
	/* the target's own view, in which the tables become read-only; behind it nothing can be written */
	const size_t behind = 256u << 20;
	unsigned char *base = mmap(
	    NULL, region.offsets.end + behind, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(base, MAP_FAILED);
	assert_ptr_equal(base,
	    mmap(base, region.offsets.end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
	        region.fd, 0));
	fixture_map_buffers(&region, base);
	const struct claim_setup with = {
	    .place = {.base = base,
	        .offsets = region.offsets,
	        .segments = region.segments,
	        .start_segments = region.segments,
	        .large_buffers = region.large_buffers,
	        .key = region.key},
	    .pid = (uint32_t)getpid(),
	};
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_ASK);
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
	memset((void *)region_walk(&region), 0,
	    offsetof(struct walk_area, counts) + 2 * sizeof(struct walk_counts));
	memset(stack, 0, WORDS * WORD_BYTES);
	memset(left, 0, sizeof(left));
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
	uint32_t number = walk_table_number(&table, walk_hash_end(hash, generation));
	walk_table_tell(&table, number, WALK_NUMBER_KNOWN);
	return number;
}

static uint32_t walk(struct walk_start start)
{
	return walk_stack(start).number;
}

static struct walk_start at_word(uintptr_t pc, size_t word)
{
	return (struct walk_start){.pc = pc, .sp = (uintptr_t)(stack + word), .fp = 0};
}

#endif

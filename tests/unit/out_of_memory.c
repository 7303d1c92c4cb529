/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables when memory runs out, for a while or for good: what fails says so, what was put in before is found
 * again, and no look-up goes round in a full table for ever (alarm() ends the test if one does). For this
 * program malloc() fails when it is told to; skipped with a sanitizer, which brings a malloc() of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/model/profile.h"
#include "sampler/symbol/string_pool.h"
#include "sampler/symbol/symbol.h"
#include "sampler/unwind/maps.h"
#include "sampler/unwind/stacks.h"
#include "sampler/write/symbolizer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOR_EVER = 1000000, NEW_ENTRIES = 3000, SECONDS_MAX = 60 };

/* Allocations that succeed before the failures, and how many then fail. */
static long good_left = FOR_EVER, bad_left;

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define CAN_FAIL false
#else
#define CAN_FAIL true

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);

static bool fails(void)
{
	if (bad_left > 0 && good_left <= 0) {
		bad_left--;
		return true;
	}
	good_left--;
	return false;
}

void *malloc(size_t bytes)
{
	return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
	return fails() ? NULL : __libc_realloc(block, bytes);
}
#endif

static void fail_after(long good, long bad)
{
	good_left = good;
	bad_left = bad;
}

static void stop_failing(void)
{
	bad_left = 0;
}

static int bound_time(void **state)
{
	alarm(SECONDS_MAX);
	return 0;
}

static uint32_t intern_frame(struct stacks *stacks, struct maps *maps, unsigned i)
{
	/* Each in a page of its own: a new frame, a new mapping, a new node. */
	const struct unwind_frame frame = {.pc = 0x10000 + 4096 * (uint64_t)i, .kind = MAP_KIND_SPECIAL};

	return stacks_intern(stacks, &frame, 1, NULL, maps);
}

/* Interns NEW_ENTRIES stacks of one frame while allocations fail, then all of them again. */
static void fill_stacks(long good, long bad)
{
	static uint32_t known[NEW_ENTRIES];
	struct modules *store = modules_new(16);
	struct maps *maps = maps_new(store, 0, false);
	struct stacks *stacks = stacks_new();
	unsigned failed = 0;

	assert_non_null(stacks);
	fail_after(good, bad);
	for (unsigned i = 0; i < NEW_ENTRIES; i++) {
		known[i] = intern_frame(stacks, maps, i);
		failed += known[i] == UINT32_MAX;
	}
	stop_failing();
	assert_true(failed > 0 || bad == 1); /* one alone may meet a cache that does without */
	for (unsigned i = 0; i < NEW_ENTRIES; i++) {
		uint32_t node = intern_frame(stacks, maps, i);

		assert_int_not_equal(node, UINT32_MAX);
		if (known[i] != UINT32_MAX)
			assert_int_equal(node, known[i]);
		assert_int_equal(
		    stacks_frame(stacks, stacks_node(stacks, node)->frame)->pc, 0x10000 + 4096ul * i);
	}
	/* Nothing is there twice: the root, and a node, frame and mapping for each. */
	assert_int_equal(stacks_node_count(stacks), 1 + NEW_ENTRIES);
	assert_int_equal(stacks_frame_count(stacks), NEW_ENTRIES);
	assert_int_equal(stacks_mapping_count(stacks), NEW_ENTRIES);
	stacks_unref(stacks);
	maps_free(maps);
	modules_free(store);
}

static void stacks_without_memory(void **state)
{
	if (!CAN_FAIL)
		skip();
	for (long good = 0; good < 12; good++) {
		fill_stacks(good, FOR_EVER);
		fill_stacks(good, 1);
	}
}

static void fill_strings(long good, long bad)
{
	static const char *known[NEW_ENTRIES];
	struct string_pool *pool = string_pool_new();
	unsigned failed = 0;
	char text[32];

	assert_non_null(pool);
	fail_after(good, bad);
	for (int i = 0; i < NEW_ENTRIES; i++) {
		known[i] = string_pool_add(pool, text, (size_t)snprintf(text, sizeof(text), "name %d", i));
		failed += !known[i];
	}
	stop_failing();
	assert_true(failed > 0 || bad == 1); /* one alone may meet a cache that does without */
	for (int i = 0; i < NEW_ENTRIES; i++) {
		const char *name =
		    string_pool_add(pool, text, (size_t)snprintf(text, sizeof(text), "name %d", i));

		assert_string_equal(name, text);
		if (known[i])
			assert_ptr_equal(name, known[i]);
	}
	string_pool_free(pool);
}

static void strings_without_memory(void **state)
{
	if (!CAN_FAIL)
		skip();
	for (long good = 0; good < 12; good++) {
		fill_strings(good, FOR_EVER);
		fill_strings(good, 1);
	}
}

/* A stack is whole or there is none, and what fails is the memory, which is a reason to try again. */
static void name_a_stack(long good)
{
	static const struct unwind_frame frames[] = {{.pc = 0x10000, .kind = MAP_KIND_SPECIAL},
	    {.pc = 0x20000, .kind = MAP_KIND_SPECIAL}, {.pc = 0x30000, .kind = MAP_KIND_SPECIAL}};
	static const int64_t value = 1;
	struct modules *store = modules_new(16);
	struct maps *maps = maps_new(store, 0, false);
	struct stacks *stacks = stacks_new();
	uint32_t stack = stacks_intern(stacks, frames, 3, NULL, maps);
	bool used[8] = {false};
	struct profile *profile = profile_new();
	struct symbolizer_source source = {.stacks = stacks,
	    .maps = maps,
	    .program = "/bin/true",
	    .symbols = symbolizer_symbols(SYMBOL_RAW, false)};
	const uint32_t *locations;

	assert_true(stack < 8);
	used[stack] = true;
	profile_add_sample_type(profile, "inuse_space", "bytes");
	fail_after(good, FOR_EVER);
	struct symbolizer *symbolizer = symbolizer_new(profile, &source, used);
	if (symbolizer) {
		size_t depth = symbolizer_stack(symbolizer, stack, true, &locations);
		int error = profile_add_sample(profile, locations, depth, &value, NULL, 0);

		stop_failing();
		assert_int_equal(depth, 4);
		assert_true(error == 0 || error == -ENOMEM);
	}
	stop_failing();
	symbolizer_free(symbolizer);
	symbols_free(source.symbols);
	profile_free(profile);
	stacks_unref(stacks);
	maps_free(maps);
	modules_free(store);
}

static void names_without_memory(void **state)
{
	if (!CAN_FAIL)
		skip();
	for (long good = 0; good < 200; good++)
		name_a_stack(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(stacks_without_memory, bound_time),
	    cmocka_unit_test_setup(strings_without_memory, bound_time),
	    cmocka_unit_test_setup(names_without_memory, bound_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

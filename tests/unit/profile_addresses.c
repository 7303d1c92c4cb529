/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that were used again: every frame keeps an address, and a file offset, that is its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/write/profile_mappings.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, FILES = 3 };

struct space {
	struct modules *store;
	struct maps *maps;
	struct stacks *stacks;
	struct module *file[FILES];
};

static int setup(void **state)
{
	static const char *const paths[FILES] = {"/proc/self/exe", "/bin/sh", "/bin/cat"};
	struct space *s = calloc(1, sizeof(*s));

	s->store = modules_new(16);
	s->maps = maps_new(s->store, 0, false);
	s->stacks = stacks_new();
	for (int i = 0; i < FILES; i++)
		s->file[i] = module_get(s->store, &(struct module_request){.path = paths[i]});
	*state = s;
	return s->file[0] == s->file[1] || s->file[1] == s->file[2];
}

static int teardown(void **state)
{
	struct space *s = *state;

	stacks_unref(s->stacks);
	maps_free(s->maps);
	for (int i = 0; i < FILES; i++)
		module_unref(s->file[i]);
	modules_free(s->store);
	free(s);
	return 0;
}

static void map(struct space *s, uint64_t start, uint64_t len, uint64_t pgoff)
{
	const struct map_range range = {
	    .start = start, .len = len, .pgoff = pgoff, .prot = PROT_READ | PROT_EXEC};

	assert_int_equal(maps_add(s->maps, &range), 0);
}

/* The number of the frame at PC, of a file or (-1) of none. */
static uint32_t seen(struct space *s, uint64_t pc, int file)
{
	const struct map *at = maps_find(s->maps, pc);
	const struct unwind_frame frame = {
	    .pc = pc,
	    .vaddr = pc,
	    .module = file < 0 ? NULL : s->file[file],
	    .kind = (uint8_t)(pc >= MAP_KERNEL_START && file == -2 ? MAP_KIND_KERNEL
	            : file >= 0                                    ? MAP_KIND_FILE
	            : at                                           ? MAP_KIND_ANON
	                                                           : MAP_KIND_SPECIAL),
	};
	uint32_t stack = stacks_intern(s->stacks, &frame, 1, NULL, s->maps);

	assert_int_not_equal(stack, UINT32_MAX);
	return stacks_node(s->stacks, stack)->frame;
}

static uint64_t address_of(struct space *s, uint32_t frame)
{
	struct profile_addresses *l = profile_addresses_new(s->stacks);
	uint64_t address;
	uint32_t range;

	assert_non_null(l);
	assert_true(profile_addresses_find(l, frame, &range, &address));
	profile_addresses_free(l);
	return address;
}

static int by_start(const void *a, const void *b)
{
	const struct profile_addresses_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void check_ranges(const struct profile_addresses *l)
{
	uint32_t count = profile_addresses_count(l);
	struct profile_addresses_range *sorted = calloc(count + 1, sizeof(*sorted));

	for (uint32_t i = 0; i < count; i++)
		sorted[i] = *profile_addresses_range(l, i);
	qsort(sorted, count, sizeof(*sorted), by_start);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(sorted[i].start < sorted[i].limit);
		assert_true(i + 1 == count || sorted[i].limit <= sorted[i + 1].start);
		assert_false(sorted[i].start < PROFILE_ADDRESSES_RESERVED_END &&
		    sorted[i].limit > PROFILE_ADDRESSES_RESERVED_START);
	}
	assert_false(
	    profile_addresses_overlaps(l, PROFILE_ADDRESSES_RESERVED_START, PROFILE_ADDRESSES_RESERVED_END));
	free(sorted);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What must hold of any: every frame inside its range, at the offset in the file that it had; no two at one
 * address. */
static void check(struct space *s, bool distinct)
{
	struct profile_addresses *l = profile_addresses_new(s->stacks);
	uint32_t count = stacks_frame_count(s->stacks), range;
	uint64_t *addresses = calloc(count + 1, sizeof(*addresses));

	assert_non_null(l);
	check_ranges(l);
	for (uint32_t i = 0; i < count; i++) {
		const struct stack_frame *frame = stacks_frame(s->stacks, i);
		const struct stack_mapping *m = stacks_mapping(s->stacks, frame->mapping);

		assert_true(profile_addresses_find(l, i, &range, &addresses[i]));
		const struct profile_addresses_range *r = profile_addresses_range(l, range);
		assert_in_range(addresses[i], r->start, r->limit - 1);
		assert_ptr_equal(stacks_mapping(s->stacks, r->mapping)->module, m->module);
		if (m->module)
			assert_int_equal(
			    addresses[i] - r->start + r->file_offset, frame->pc - m->start + m->file_offset);
	}
	qsort(addresses, count, sizeof(*addresses), by_value);
	for (uint32_t i = 1; i < count && distinct; i++)
		assert_int_not_equal(addresses[i], addresses[i - 1]);
	free(addresses);
	profile_addresses_free(l);
}

static void undisturbed(void **state)
{
	struct space *s = *state;

	map(s, 0x400000, 0x4000, 0x1000);
	map(s, 0x7f0000, 0x8000, 0);
	uint32_t a = seen(s, 0x401234, 0), b = seen(s, 0x7f1000, 1);
	check(s, true);
	assert_int_equal(address_of(s, a), 0x401234);
	assert_int_equal(address_of(s, b), 0x7f1000);
}

/* Each new user of the range gets another; nobody's address changes from snapshot to snapshot. */
static void libraries_by_turns(void **state)
{
	struct space *s = *state;
	uint32_t frame[FILES][3];
	uint64_t address[FILES][3];

	for (int round = 0; round < 3; round++)
		for (int i = 0; i < FILES; i++) {
			uint64_t start = 0x7f0000 - (uint64_t)i * PAGE;

			map(s, start, 0x5000, 0x2000 + (uint64_t)i * PAGE);
			frame[i][round] = seen(s, 0x7f0100 + (uint64_t)round, i);
			address[i][round] = address_of(s, frame[i][round]);
			check(s, true);
			maps_remove(s->maps, start, 0x5000);
		}
	for (int i = 0; i < FILES; i++)
		for (int round = 0; round < 3; round++) {
			assert_int_equal(address[i][round], address_of(s, frame[i][round]));
			assert_int_equal(address[i][round], address[i][0] + (uint64_t)round);
			assert_int_equal(i == 0, address[i][round] == 0x7f0100 + (uint64_t)round);
		}
}

/* The same file somewhere else in its range is another place of it; the same place is the same address. */
static void one_file_at_two_offsets(void **state)
{
	struct space *s = *state;

	map(s, 0x7f0000, 0x4000, 0);
	uint32_t low = seen(s, 0x7f0100, 0);
	map(s, 0x7f0000, 0x4000, 0x9000);
	uint32_t high = seen(s, 0x7f0100, 0);
	map(s, 0x7f0000, 0x2000, 0);
	uint32_t again = seen(s, 0x7f0100, 0);
	check(s, false);
	assert_int_equal(address_of(s, low), 0x7f0100);
	assert_int_not_equal(address_of(s, high), 0x7f0100);
	assert_int_equal(address_of(s, again), 0x7f0100);
}

/* Code made at run time stays where it is while its range grows; what takes its place does not get its
 * address. */
static void code_made_at_run_time(void **state)
{
	struct space *s = *state;

	map(s, 0x7f0000, 0x1000, 0x7f0000);
	uint32_t small = seen(s, 0x7f0800, -1);
	map(s, 0x7ef000, 0x4000, 0);
	uint32_t grown = seen(s, 0x7f0800, -1), below = seen(s, 0x7ef010, -1);
	assert_int_equal(address_of(s, small), 0x7f0800);
	assert_int_equal(address_of(s, grown), 0x7f0800);
	assert_int_equal(address_of(s, below), 0x7ef010);
	map(s, 0x7ee000, 0x8000, 0);
	uint32_t library = seen(s, 0x7f0800, 2), beside = seen(s, 0x7f4000, 2);
	assert_true(address_of(s, library) >= PROFILE_MOVED_START);
	assert_int_equal(address_of(s, beside), 0x7f4000);
	maps_clear(s->maps);
	uint32_t nothing = seen(s, 0x7f0800, -1);
	assert_int_not_equal(address_of(s, nothing), address_of(s, library));
	assert_int_not_equal(address_of(s, nothing), 0x7f0800);
	check(s, false);
}

static void wild_addresses(void **state)
{
	struct space *s = *state;
	static const uint64_t pcs[] = {2, 0xfff, 0x1003, 0x2000, 0x3000, PROFILE_MOVED_START,
	    PROFILE_MOVED_START + 5, PROFILE_MOVED_START + 0x2fff, PROFILE_MOVED_END - 1, MAP_KERNEL_START,
	    UINT64_MAX - 1, UINT64_MAX - 5000};

	for (size_t i = 0; i < sizeof(pcs) / sizeof(*pcs); i++)
		seen(s, pcs[i], -1);
	check(s, true);
	uint32_t kernel = seen(s, MAP_KERNEL_START + 5, -2), top = seen(s, UINT64_MAX - 2, -2);
	check(s, true);
	assert_int_equal(address_of(s, kernel), MAP_KERNEL_START + 5);
	assert_int_equal(address_of(s, top), UINT64_MAX - 2);
	seen(s, UINT64_MAX, -1);
	seen(s, UINT64_MAX, -2);
	assert_int_equal(address_of(s, seen(s, 0, -1)), 1);
	check(s, false);
}

static void no_address_left(void **state)
{
	struct space *s = *state;
	uint32_t range, left = 0;
	uint64_t address;

	for (uint64_t i = 0; i < 64; i++) {
		map(s, 0x1000 + i * PAGE, UINT64_C(1) << 61, i * PAGE);
		seen(s, 0x100000, (int)(i % FILES));
	}
	struct profile_addresses *l = profile_addresses_new(s->stacks);
	assert_non_null(l);
	check_ranges(l);
	for (uint32_t i = 0; i < stacks_frame_count(s->stacks); i++)
		left += !profile_addresses_find(l, i, &range, &address);
	assert_in_range(left, 1, 63);
	profile_addresses_free(l);
}

static void anything(void **state)
{
	struct space *s = *state;

	srandom(1);
	for (int i = 0; i < 20000; i++) {
		uint64_t start = (uint64_t)(random() % 64) * PAGE;

		if (i % 4 == 0)
			map(s, start, (uint64_t)(1 + random() % 16) * PAGE,
			    (uint64_t)(random() % 2) * PAGE + start);
		seen(s, 1 + (uint64_t)(random() % (64 * PAGE)), (int)(random() % (FILES + 1)) - 1);
		if (i % 1000 == 999)
			check(s, false);
	}
}

/* One mapping for each of a million wild addresses: seconds, if it were not linear. */
static void a_million_mappings(void **state)
{
	struct space *s = *state;
	struct profile_addresses *l;

	for (uint64_t i = 0; i < 1000000; i++)
		seen(s, 0x10000 + (i * 7919 % 1000003) * 2 * PAGE, -1);
	l = profile_addresses_new(s->stacks);
	assert_non_null(l);
	assert_int_equal(profile_addresses_count(l), 1000000);
	profile_addresses_free(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(undisturbed),
	    TEST(libraries_by_turns),
	    TEST(one_file_at_two_offsets),
	    TEST(code_made_at_run_time),
	    TEST(wild_addresses),
	    TEST(no_address_left),
	    TEST(anything),
	    TEST(a_million_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

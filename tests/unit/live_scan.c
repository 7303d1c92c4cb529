/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the shared table: whose blocks, which are whole, which were live at the peak, and with
 * hostile writers. */
#include "sampler/intake/live_scan.h"
#include "proto/buffer.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

enum { SEGMENTS = 4, SLOTS = SEGMENTS * REGION_SEGMENT_SLOTS };

static int open_region(void **state)
{
	struct region *region = malloc(sizeof(*region));

	fixture_open(region, SLOTS);
	*state = region;
	return region->segments != SEGMENTS;
}

static int close_region(void **state)
{
	region_close(*state);
	free(*state);
	return 0;
}

static void put(const struct region *region, uint32_t number, uint64_t seq)
{
	fixture_live(region, number,
	    &(const struct fixture_block){
	        .seq = seq, .size_bytes = 100 + seq, .time_ns = 7 * seq, .tid = (uint32_t)seq});
}

static struct live_scan scan(const struct region *region, uint32_t place)
{
	struct live_scan found;

	assert_int_equal(live_scan_take(&found, region, place), 0);
	for (size_t i = 0; i < found.count; i++) {
		assert_true(found.blocks[i].live || found.blocks[i].peak);
		assert_in_range(found.blocks[i].number, 0, SLOTS - 1);
	}
	return found;
}

/* Of a scan that finds that slot once: 'l'ive, at the 'p'eak, 'b'oth; '-' it is not there. */
static char found_as(const struct live_scan *found, uint32_t number, uint64_t seq)
{
	char as = '-';

	for (size_t i = 0; i < found->count; i++) {
		const struct live_scan_block *block = &found->blocks[i];

		if (block->number != number || block->slot.seq != seq)
			continue;
		assert_int_equal(as, '-');
		as = block->live && block->peak ? 'b' : block->live ? 'l' : 'p';
	}
	return as;
}

static void a_place_has_the_blocks_of_its_own_segments(void **state)
{
	const struct region *region = *state;

	fixture_own(region, 0, 0);
	fixture_own(region, 1, 3);
	fixture_own(region, 3, 0);
	for (uint32_t s = 0; s < SEGMENTS; s++) {
		put(region, s * REGION_SEGMENT_SLOTS, 10 + s);
		put(region, s * REGION_SEGMENT_SLOTS + REGION_SEGMENT_SLOTS - 1, 20 + s);
	}
	fixture_count(region, 0, 4, 1000);
	struct live_scan found = scan(region, 0);
	assert_int_equal(found.count, 4);
	assert_int_equal(found_as(&found, 0, 10), 'l');
	assert_int_equal(found_as(&found, REGION_SEGMENT_SLOTS - 1, 20), 'l');
	assert_int_equal(found_as(&found, 3 * REGION_SEGMENT_SLOTS, 13), 'l');
	assert_int_equal(found_as(&found, SLOTS - 1, 23), 'l');
	assert_int_equal(found.counted.samples, 4);
	assert_int_equal(found.counted.bytes_q8, 1000 << WEIGHT_BYTES_SHIFT);
	assert_int_equal(found.blocks[0].slot.sample.size_bytes, 110);
	assert_int_equal(found.blocks[0].slot.sample.time_ns, 70);
	assert_int_equal(found.blocks[0].slot.sample.tid, 10);
	assert_int_not_equal(found.now_ns, 0);
	live_scan_fini(&found);
	found = scan(region, 3);
	assert_int_equal(found.count, 2);
	live_scan_fini(&found);
	found = scan(region, 1);
	assert_int_equal(found.count, 0);
	live_scan_fini(&found);
}

static void no_such_place(void **state)
{
	struct live_scan found;

	assert_int_equal(live_scan_take(&found, *state, REGION_PLACES), -EINVAL);
	live_scan_fini(&found);
	assert_int_equal(live_scan_take(&found, *state, UINT32_MAX), -EINVAL);
	live_scan_fini(&found);
	assert_int_equal(found.count, 0);
}

/* The thread was killed there, or has not come to the end yet. */
static void half_written_slots_are_not_blocks(void **state)
{
	const struct region *region = *state;

	fixture_own(region, 0, 0);
	for (uint32_t word = 0; word < 256; word++) {
		put(region, word, word);
		fixture_slot(region, word)->freed_order = 5000; /* it lived at the peak */
		atomic_store(&fixture_slot(region, word)->word, (uint64_t)word << 8 | word);
	}
	fixture_peak(region, 0, 1000, 0);
	struct live_scan found = scan(region, 0);
	assert_int_equal(found.count, 2);
	assert_int_equal(found_as(&found, SLOT_FREED, SLOT_FREED), 'p');
	assert_int_equal(found_as(&found, SLOT_LIVE, SLOT_LIVE), 'b');
	live_scan_fini(&found);
}

/* Order: five inserts (0 to 4, the last is the peak), then frees and another insert. */
static void the_peak_is_what_lived_when_it_was_reached(void **state)
{
	const struct region *region = *state;

	fixture_own(region, 0, 0);
	for (uint32_t i = 0; i < 4; i++)
		put(region, i, i);
	fixture_freed(region, 1, 4); /* before the peak */
	put(region, 4, 5);           /* which this makes */
	fixture_peak(region, 0, 5, 4);
	fixture_freed(region, 2, 6);
	put(region, 5, 7);
	fixture_keep(region, 3); /* freed, and its slot used again */
	fixture_kept(region, 3)->freed_order = 8;
	atomic_store(&fixture_kept(region, 3)->word, 3 << 8 | SLOT_FREED);
	put(region, 3, 9);
	struct live_scan found = scan(region, 0);
	assert_int_equal(found_as(&found, 0, 0), 'b');
	assert_int_equal(found_as(&found, 1, 1), '-');
	assert_int_equal(found_as(&found, 2, 2), 'p');
	assert_int_equal(found_as(&found, 3, 3), 'p');
	assert_int_equal(found_as(&found, 3, 9), 'l');
	assert_int_equal(found_as(&found, 4, 5), 'b');
	assert_int_equal(found_as(&found, 5, 7), 'l');
	assert_int_equal(found.count, 6);
	assert_int_equal(found.peak_order, 6);
	assert_int_equal(found.peak_ns, 7 * 5);
	assert_int_equal(found.peak_missing, 0);
	live_scan_fini(&found);
	/* The hook says that there were more, or fewer. */
	fixture_peak(region, 0, 5, 6);
	found = scan(region, 0);
	assert_int_equal(found.peak_missing, 2);
	live_scan_fini(&found);
	fixture_peak(region, 0, 5, 1);
	found = scan(region, 0);
	assert_int_equal(found.peak_missing, -3);
	live_scan_fini(&found);
}

/* Its slot keeps what it was at the peak, and lives on: that is one block, at the peak in its old size. */
static void a_mapping_that_has_shrunk_since_the_peak_is_kept(void **state)
{
	const struct region *region = *state;

	fixture_own(region, 0, 0);
	put(region, 0, 0);
	fixture_peak(region, 0, 0, 1);
	fixture_keep(region, 0);
	fixture_kept(region, 0)->freed_order = 1;
	atomic_store(&fixture_kept(region, 0)->word, 0 << 8 | SLOT_FREED);
	fixture_slot(region, 0)->unmapped_pages = 1;
	struct live_scan found = scan(region, 0);
	assert_int_equal(found.count, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_not_equal(found.blocks[i].live, found.blocks[i].peak);
		assert_int_equal(found.blocks[i].slot.unmapped_pages, found.blocks[i].live);
	}
	assert_int_equal(found.peak_missing, 0);
	live_scan_fini(&found);
}

/* A child's peak may be what it inherited: not the time of an allocation in its parent. */
static void an_inherited_block_does_not_date_the_peak(void **state)
{
	const struct region *region = *state;

	fixture_own(region, 0, 0);
	fixture_live(region, 0,
	    &(const struct fixture_block){.seq = 4, .size_bytes = 9, .time_ns = 1, .flags = SLOT_INHERITED});
	fixture_peak(region, 0, 4, 1);
	atomic_store(&region_place(region, 0)->peak_ns, 5000);
	struct live_scan found = scan(region, 0);
	assert_int_equal(found.peak_ns, 5000);
	live_scan_fini(&found);
}

/* ---- while others write */

struct writer {
	const struct region *region;
	_Atomic bool stop;
	_Atomic uint64_t rounds;
};

/* As the hook does it, each block of a size that follows from its number. */
static void *use_slots(void *argument)
{
	struct writer *w = argument;

	for (uint64_t seq = 0; !atomic_load(&w->stop); seq++) {
		uint32_t number = (uint32_t)(seq % 8);

		put(w->region, number, seq);
		if (seq % 3 == 0)
			fixture_freed(w->region, number, seq + 1);
		atomic_fetch_add(&w->rounds, 1);
	}
	return NULL;
}

static void no_block_is_a_mixture_of_two(void **state)
{
	const struct region *region = *state;
	struct writer w = {.region = region};
	pthread_t thread;
	uint64_t blocks = 0;

	fixture_own(region, 0, 0);
	fixture_peak(region, 0, UINT64_MAX / 1024, 0);
	assert_int_equal(pthread_create(&thread, NULL, use_slots, &w), 0);
	while (atomic_load(&w.rounds) < 3000000 || blocks < 1000) {
		struct live_scan found = scan(region, 0);

		for (size_t i = 0; i < found.count; i++) {
			const struct slot_copy *slot = &found.blocks[i].slot;

			assert_int_equal(slot->sample.size_bytes, 100 + slot->seq);
			assert_int_equal(slot->sample.time_ns, 7 * slot->seq);
			assert_int_equal(slot->sample.tid, (uint32_t)slot->seq);
		}
		blocks += found.count;
		live_scan_fini(&found);
	}
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
}

static void *move_peak(void *argument)
{
	struct writer *w = argument;

	for (uint64_t seq = 0; !atomic_load(&w->stop); seq++) {
		fixture_peak(w->region, 0, seq % 64, seq);
		atomic_fetch_add(&w->rounds, 1);
	}
	return NULL;
}

/* The scan ends, and what it says of the peak fits the number that it gives. */
static void a_peak_that_never_rests(void **state)
{
	const struct region *region = *state;
	struct writer w = {.region = region};
	pthread_t thread;

	fixture_own(region, 0, 0);
	for (uint32_t i = 0; i < 64; i++)
		put(region, i, i);
	assert_int_equal(pthread_create(&thread, NULL, move_peak, &w), 0);
	for (int n = 0; n < 1000 || atomic_load(&w.rounds) < 100000; n++) {
		struct live_scan found = scan(region, 0);

		assert_int_equal(found.count, 64);
		for (uint32_t i = 0; i < 64; i++)
			assert_int_equal(found_as(&found, i, i), i < found.peak_order ? 'b' : 'l');
		live_scan_fini(&found);
	}
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
}

static void every_byte_hostile(void **state)
{
	const struct region *region = *state;
	uint64_t random = 88172645463325252u;

	for (size_t at = region->offsets.segments; at < region->offsets.end; at += 8) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		/* as many as possible in a state that is believed */
		uint64_t word = at % 64 ? random : (random & ~(uint64_t)0xff) | (2 + random / 512 % 2);
		memcpy(region->base + at, &word, 8);
	}
	for (uint32_t s = 0; s < SEGMENTS; s++)
		fixture_own(region, s, 9);
	memset((void *)region_place(region, 9), 0xff, sizeof(struct region_place));
	struct live_scan found = scan(region, 9);
	assert_in_range(found.count, SLOTS / 4, 2 * SLOTS);
	assert_int_equal(found.counted.samples, UINT64_MAX);
	assert_in_range(found.peak_ns, 1, found.now_ns);
	live_scan_fini(&found);
	for (uint32_t s = 0; s < SEGMENTS; s++)
		fixture_set_owner(region, s, (uint16_t)(REGION_PLACES + 1 + s));
	for (uint32_t place = 0; place < REGION_PLACES; place++) {
		found = scan(region, place);
		assert_int_equal(found.count, 0);
		live_scan_fini(&found);
	}
}

/* The memory of both files. */
static blkcnt_t blocks_of(const struct region *region)
{
	struct stat own, buffers;

	assert_int_equal(fstat(region->fd, &own), 0);
	assert_int_equal(fstat(region->buffers_fd, &buffers), 0);
	return own.st_blocks + buffers.st_blocks;
}

/* A program run that says of all segments that they are its place's pays for what it has written, not we
 * for the rest; nor for its buffers, when it says that all are full. */
static void what_nobody_has_written_takes_no_memory(void **state)
{
	struct region *region = *state;
	const struct region_drain drain = {0};
	blkcnt_t before, after;

	region->sparse = true;
	for (uint32_t s = 0; s < SEGMENTS; s++)
		fixture_own(region, s, 0);
	for (uint32_t s = 1; s < SEGMENTS; s++)
		put(region, s * REGION_SEGMENT_SLOTS + 500, s);
	memset(region->base + region->offsets.buffers, 0xff, BUFFER_BITMAPS_BYTES);
	fixture_count(region, 0, 3, 1000);
	before = blocks_of(region);
	struct live_scan found = scan(region, 0);
	assert_int_equal(found.count, 3);
	assert_int_equal(region_drain_buffers(region, &drain), 0);
	live_scan_fini(&found);
	struct live_scan_slots slots = live_scan_slots(region, 0);
	struct slot_copy block;
	for (uint32_t number, s = 1; s < SEGMENTS; s++) {
		assert_true(live_scan_next(&slots, &number, &block));
		assert_int_equal(number, s * REGION_SEGMENT_SLOTS + 500);
	}
	assert_false(live_scan_next(&slots, &(uint32_t){0}, &block));
	after = blocks_of(region);
	/* a page of addresses for each of the three blocks, and two of the place */
	assert_in_range(after, before, before + 5 * 8);
	region_release_place(region, 0);
	found = scan(region, 0);
	assert_int_equal(found.count, 0);
	live_scan_fini(&found);
	assert_in_range(blocks_of(region), 0, after + 8); /* the head of its log of stacks is read */
	region->sparse = false;
}

/* Reads all that it may. */
static bool read_all(
    void *context, const struct region_buffer *header, const unsigned char *stack, size_t room)
{
	size_t *most = context;
	unsigned char sum = 0;
	const size_t bytes = header->stack_bytes < room ? header->stack_bytes : room;

	for (size_t i = 0; i < bytes; i++)
		sum = (unsigned char)(sum + ((const volatile unsigned char *)stack)[i]);
	*most = bytes > *most ? bytes : *most;
	return sum < 255;
}

/* Nor for a stack of which it has written some pages alone, and says that it has all. */
static void a_stack_with_holes_takes_no_memory(void **state)
{
	enum { LARGE = 4 }; /* a class, whose buffers have 16 pages */
	struct region *region = *state;
	size_t most = 0, at = region->offsets.buffers + BUFFER_BITMAPS_BYTES;
	const struct region_drain drain = {.taken = read_all, .context = &most};
	const uint32_t bytes = buffer_class[LARGE].bytes;

	region->sparse = true;
	for (int class = 0; class < LARGE; class ++)
		at += (size_t)buffer_class[class].count * buffer_class[class].bytes;
	memset(region->base + region->offsets.buffers, 0xff, BUFFER_BITMAPS_BYTES);
	for (uint32_t i = 0; i < buffer_class[LARGE].count; i++) {
		struct region_buffer *buffer = (void *)(region->base + at + (size_t)i * bytes);

		buffer->stack_bytes = bytes - sizeof(*buffer);
		if (i > 0) /* the first: its header alone */
			for (uint32_t page = 0; page < 16; page += page == 3 ? 2 : 1)
				((volatile unsigned char *)buffer)[page * REGION_PAGE_BYTES] += 0;
		atomic_store(&buffer->word, buffer_word(BUFFER_FULL, 0));
	}
	const blkcnt_t before = blocks_of(region);
	assert_int_equal(region_drain_buffers(region, &drain), buffer_class[LARGE].count);
	assert_int_equal(most, 4 * REGION_PAGE_BYTES - sizeof(struct region_buffer));
	assert_int_equal(blocks_of(region), before);
	/* One that is whole is read to its end. */
	memset(region->base + at, 1, 2 * bytes);
	struct region_buffer *whole = (void *)(region->base + at);
	whole->stack_bytes = bytes - sizeof(*whole);
	atomic_store(&whole->word, buffer_word(BUFFER_FULL, 0));
	memset(region->base + region->offsets.buffers, 0xff, BUFFER_BITMAPS_BYTES);
	assert_int_equal(region_drain_buffers(region, &drain), 1);
	assert_int_equal(most, bytes - sizeof(*whole));
	region->sparse = false;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_region, close_region)
	const struct CMUnitTest tests[] = {
	    TEST(a_place_has_the_blocks_of_its_own_segments),
	    TEST(no_such_place),
	    TEST(half_written_slots_are_not_blocks),
	    TEST(the_peak_is_what_lived_when_it_was_reached),
	    TEST(a_mapping_that_has_shrunk_since_the_peak_is_kept),
	    TEST(an_inherited_block_does_not_date_the_peak),
	    TEST(no_block_is_a_mixture_of_two),
	    TEST(a_peak_that_never_rests),
	    TEST(every_byte_hostile),
	    TEST(what_nobody_has_written_takes_no_memory),
	    TEST(a_stack_with_holes_takes_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

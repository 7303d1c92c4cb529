/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* Slots, frees and stack buffers that a program run has written, while it writes, or when it has died. */
#include "sampler/intake/region.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

static const struct region_options options = {
    .period_bytes = 64, .dump_bytes = 8192, .clock_id = 1, .live_max = 5000, .mode = REGION_MODE_COPY};

static void slots_are_read_when_whole(void **unused)
{
	struct region region;
	struct slot_copy copy;

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	assert_false(region_read_slot(&region, 0, &copy));
	fixture_slot(&region, 0)->word = 5 << 8 | SLOT_WRITING;
	assert_false(region_read_slot(&region, 0, &copy));
	fixture_slot(&region, 0)->sample.size_bytes = 77;
	*fixture_address(&region, 0) = 0x7f0012345670;
	fixture_slot(&region, 0)->word = 5 << 8 | SLOT_LIVE;
	assert_true(region_read_slot(&region, 0, &copy));
	assert_true(copy.seq == 5 && copy.sample.size_bytes == 77 && copy.address == 0x7f0012345670);
	for (uint64_t state = 3; state < 256; state++) {
		fixture_slot(&region, 0)->word = 5 << 8 | state;
		assert_false(region_read_slot(&region, 0, &copy));
	}
	assert_false(region_read_slot(&region, region.segments * REGION_SEGMENT_SLOTS, &copy));
	assert_false(region_read_slot(&region, UINT32_MAX, &copy));
	region_close(&region);
}

/* Its owner is about to free it: the free's number is stored before the word says so. */
static void the_free_of_a_live_slot_is_not_read(void **unused)
{
	struct region region;
	struct slot_copy copy;

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	fixture_live(
	    &region, 0, &(const struct fixture_block){.seq = 5, .size_bytes = 77, .time_ns = 9, .tid = 3});
	fixture_slot(&region, 0)->freed_order = 8;
	assert_true(region_read_any(&region, 0, &copy));
	assert_int_equal(SLOT_LIVE, copy.state);
	assert_int_equal(0, copy.freed_order);
	assert_true(copy.sample.size_bytes == 77 && copy.sample.time_ns == 9 && copy.sample.tid == 3);
	fixture_freed(&region, 0, 8);
	assert_true(region_read_any(&region, 0, &copy));
	assert_int_equal(SLOT_FREED, copy.state);
	assert_int_equal(8, copy.freed_order);
	assert_true(copy.sample.size_bytes == 77 && copy.sample.time_ns == 9 && copy.sample.tid == 3);
	region_close(&region);
}

static void owners_are_checked(void **unused)
{
	struct region region;

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	fixture_own(&region, 0, 0);
	fixture_own(&region, 1, REGION_PLACES - 1);
	fixture_set_owner(&region, 2, REGION_PLACES + 1);
	fixture_set_owner(&region, 3, UINT16_MAX);
	assert_int_equal(0, region_segment_owner(&region, 0));
	assert_int_equal(REGION_PLACES - 1, region_segment_owner(&region, 1));
	assert_int_equal(-1, region_segment_owner(&region, 2));
	assert_int_equal(-1, region_segment_owner(&region, 3));
	assert_int_equal(-1, region_segment_owner(&region, 4));
	assert_int_equal(-1, region_segment_owner(&region, UINT32_MAX));
	region_close(&region);
}

/* ---- stack buffers */

struct seen {
	size_t count, bytes;
	uint32_t places[4];
	bool leave;
};

static bool see(void *context, const struct region_buffer *header, const unsigned char *stack, size_t room)
{
	struct seen *seen = context;

	if (seen->count < 4)
		seen->places[seen->count] = header->place;
	seen->count++;
	for (size_t i = 0; i < room; i += 512)
		seen->bytes += 1 + (stack[i] & 0); /* all of the room is ours to read */
	return !seen->leave;
}

static unsigned char *buffer_area(const struct region *region)
{
	return region->base + region->offsets.buffers;
}

static void buffers_are_drained_once(void **unused)
{
	struct region region;
	struct seen seen = {0};
	const struct region_drain drain = {.taken = see, .context = &seen};

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	uint64_t *bitmap = (uint64_t *)(void *)buffer_area(&region);
	for (uint32_t i = 0; i < 3; i++) {
		fixture_take_buffer(&region, 0, i);
		fixture_buffer(&region, 0, i)->place = i + 1;
		fixture_buffer(&region, 0, i)->word = (i == 1 ? BUFFER_WRITING : BUFFER_FULL) | (i + 1) << 8;
	}
	seen.leave = true;
	assert_int_equal(0, region_drain_buffers(&region, &drain));
	assert_true(seen.count == 2 && bitmap[0] == 7);
	seen = (struct seen){0};
	assert_int_equal(2, region_drain_buffers(&region, &drain));
	assert_true(seen.count == 2 && seen.places[0] == 1 && seen.places[1] == 3);
	assert_int_equal(2, bitmap[0]);
	assert_int_equal(0, region_drain_buffers(&region, &drain));
	/* The writer is dead: what it held comes back. */
	region_release_place(&region, 2);
	assert_int_equal(0, bitmap[0]);
	region_close(&region);
}

/* Full buffers of children that have changed their user id come too, and only what a dead one was writing is
 * given back. */
static void both_areas_are_drained(void **unused)
{
	struct region region;
	struct seen seen = {0};
	const struct region_drain drain = {.taken = see, .context = &seen};

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	unsigned char *area = region.base + region.offsets.dropped_buffers;
	struct region_buffer *first = (void *)(area + BUFFER_BITMAPS_BYTES),
	                     *second = (void *)((unsigned char *)first + buffer_class[0].bytes);
	*(uint64_t *)(void *)area = 3;
	first->word = buffer_word(BUFFER_FULL, 2);
	second->word = buffer_word(BUFFER_WRITING, 2);
	assert_int_equal(1, region_drain_buffers(&region, &drain));
	assert_int_equal(2, *(uint64_t *)(void *)area);
	region_release_place(&region, 2);
	assert_int_equal(0, *(uint64_t *)(void *)area);
	region_close(&region);
}

static void every_bit_set(void **unused)
{
	struct region region;
	struct seen seen = {0};
	const struct region_drain drain = {.taken = see, .context = &seen};

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	memset(buffer_area(&region), 0xff, BUFFER_BITMAPS_BYTES);
	memset(region.base + region.offsets.dropped_buffers, 0xff, BUFFER_BITMAPS_BYTES);
	assert_int_equal(0, region_drain_buffers(&region, &drain));
	size_t all = 0;
	for (uint32_t c = 0; c < BUFFER_CLASSES; c++)
		for (uint32_t i = 0; i < buffer_class[c].count; i++, all++)
			fixture_buffer(&region, c, i)->word = BUFFER_FULL;
	unsigned char *dropped = region.base + region.offsets.dropped_buffers + BUFFER_BITMAPS_BYTES;
	for (uint32_t c = 0; c < BUFFER_CLASSES; c++)
		for (uint32_t i = 0; i < buffer_class[c].dropped_count;
		     i++, all++, dropped += buffer_class[c].bytes)
			((struct region_buffer *)(void *)dropped)->word = BUFFER_FULL;
	assert_true(dropped <= region.base + region.offsets.walk);
	const uint32_t last = BUFFER_CLASSES - 1;
	unsigned char *last_buffer =
	    (unsigned char *)fixture_buffer(&region, last, buffer_class[last].count - 1);
	assert_true(last_buffer + buffer_class[last].bytes <= region.base + region.offsets.frees);
	assert_int_equal(all, region_drain_buffers(&region, &drain));
	assert_int_equal(all, seen.count);
	region_close(&region);
}

/* ---- all of it at random, while it is read */

static _Atomic int stop;

static void *scribble(void *argument)
{
	const struct region *region = argument;
	uint64_t state = 88172645463325252u;

	while (!stop) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		/* Half of it where it matters most. */
		size_t span =
		    state & 1 ? region->offsets.end : region->offsets.buffers + BUFFER_BITMAPS_BYTES;
		memcpy(region->base + (state >> 8) % (span - 8), &state, 8);
	}
	return NULL;
}

static void scribbled_over(void **unused)
{
	struct region region;
	struct seen seen = {0};
	const struct region_drain drain = {.taken = see, .context = &seen};
	struct slot_copy copy;
	pthread_t thread;

	assert_int_equal(0, region_open(&region, 3, 0, &options));
	const struct region before = region;
	stop = 0;
	assert_int_equal(0, pthread_create(&thread, NULL, scribble, &region));
	for (int i = 0; i < 200; i++) {
		for (uint32_t n = 0; n < region.segments * REGION_SEGMENT_SLOTS; n += 7) {
			region_segment_owner(&region, n);
			region_read_slot(&region, n, &copy);
		}
		region_drain_buffers(&region, &drain);
		region_release_place(&region, (uint32_t)i % (REGION_PLACES + 2));
	}
	stop = 1;
	pthread_join(thread, NULL);
	assert_memory_equal(&before, &region, sizeof(region));
	region_close(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(slots_are_read_when_whole),
	    cmocka_unit_test(the_free_of_a_live_slot_is_not_read),
	    cmocka_unit_test(owners_are_checked),
	    cmocka_unit_test(buffers_are_drained_once),
	    cmocka_unit_test(both_areas_are_drained),
	    cmocka_unit_test(every_bit_set),
	    cmocka_unit_test(scribbled_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

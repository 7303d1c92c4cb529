/* SPDX-License-Identifier: Apache-2.0 */
/* More live samples than the program run has mapped room for when it starts: segments and tables grow,
 * once. */
#include "preload/block.h"
#include "preload/live.h"
#include "preload/memory.h"
#include "preload/memory_limit.h"
#include "preload/place.h"
#include "preload/seccomp_filter.h"
#include "preload/session.h"
#include "preload/signal.h"
#include "preload/slot.h"
#include "proto/region_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/place_scene.h"
#include "tests/unit/region_fixture.h"

/* Of what the unit tests do not link. */
void signal_leave(void)
{
}

enum { FEW = 2, SEGMENTS = 256, MANY = 150000 };

static const void *block(uint32_t number)
{
	return (const void *)(0x555500000000 + (uintptr_t)number * 4096);
}

/* A program run that has mapped FEW segments, and tables for the default period. */
static void start(void)
{
	const struct region_options options = {.period_bytes = REGION_OFFER_PERIOD_BYTES,
	    .clock_id = CLOCK_MONOTONIC,
	    .live_max = SEGMENTS * REGION_SEGMENT_SLOTS,
	    .mode = REGION_MODE_COPY};
	const struct tables_wish wish = {.period_bytes = REGION_OFFER_PERIOD_BYTES, .segments = SEGMENTS};

	assert_int_equal(0, region_open(&run_region, 7, 0xabcd0000, &options));
	struct claim_setup with = {
	    .place = {.offsets = run_region.offsets,
	        .segments = SEGMENTS,
	        .start_segments = FEW,
	        .large_buffers = run_region.large_buffers,
	        .key = run_region.key},
	    .pid = (uint32_t)getpid(),
	};
	region_header(&run_region)->start_segments = FEW;
	with.place.base = mmap(NULL, region_start_bytes(region_header(&run_region)), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_NORESERVE, run_region.fd, 0);
	assert_true(with.place.base != MAP_FAILED);
	fixture_map_buffers(&run_region, with.place.base);
	thread_open((uint32_t)getpid(), true);
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_ASK);
	assert_true(tables_open(&wish));
	claim_open(&with);
}

static void in_started_child(void **test)
{
	in_child(start, *test);
}

static void insert(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct live_entry entry = {
		    .sample = {.size_bytes = 1 + i, .period_bytes = REGION_OFFER_PERIOD_BYTES}};

		block_insert(block(i), &entry);
	}
}

static uint32_t take(uint32_t from, uint32_t to)
{
	struct live_entry entry;
	uint32_t found = 0;

	for (uint32_t i = from; i < to; i++)
		if (live_take(block(i), &entry)) {
			found += entry.sample.size_bytes == 1 + i;
			block_remove(&entry);
		}
	return found;
}

static uint64_t full(void)
{
	return region_place(&run_region, 0)->lost[REGION_LOSS_TABLE_FULL].samples;
}

/* What the sampler reads. */
static uint32_t live_slots(void)
{
	struct slot_copy copy;
	uint32_t live = 0;

	for (uint32_t i = 0; i < SEGMENTS * REGION_SEGMENT_SLOTS; i++)
		live += region_read_slot(&run_region, i, &copy) &&
		    copy.address == (uintptr_t)block((uint32_t)copy.sample.size_bytes - 1);
	return live;
}

static void every_sample_has_room(void **unused)
{
	const uint64_t before = place_bytes(), tables = tables_bytes();
	insert(0, 1000);
	assert_int_equal(place_bytes(), before);
	insert(1000, MANY);
	assert_true(place_bytes() > before);
	assert_true(tables_bytes() > tables);
	assert_int_equal(full(), 0);
	assert_int_equal(live_slots(), MANY);
	const struct region_header *header = region_header(&run_region);
	assert_true(header->own_end > header->own_start || header->grown_end > header->grown_start);
	assert_int_equal(header->grown_end - header->grown_start, tables_bytes() - tables);
	assert_int_equal(take(0, MANY), MANY);
	assert_int_equal(live_slots(), 0);
}

static void a_forked_child_has_what_its_parent_has(void **unused)
{
	int status;

	insert(0, MANY / 2);
	const pid_t pid = fork();
	if (pid == 0) {
		claim_forked();
		_exit(claim_ready() && take(0, MANY / 2) == MANY / 2 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(take(0, MANY / 2), MANY / 2);
}

/* A filter may punish the calls that this takes. */
static void under_a_filter_nothing_grows(void **unused)
{
	const uint64_t before = place_bytes(), tables = tables_bytes();
	seccomp_filter_note();
	insert(0, MANY);
	assert_int_equal(place_bytes(), before);
	assert_int_equal(tables_bytes(), tables);
	assert_int_equal(full(), MANY - FEW * REGION_SEGMENT_SLOTS);
	assert_int_equal(take(0, MANY), FEW * REGION_SEGMENT_SLOTS);
}

/* Segments have grown, and the tables have every level but the last. Returns the number of blocks. */
static uint32_t insert_until_tables_are_full(void)
{
	uint32_t count = 0;

	for (; count < MANY && !live_last_bytes(); count++)
		insert(count, count + 1);
	assert_in_range(count, 1, MANY - 1);
	return count;
}

static void under_a_later_filter_tables_do_not_grow(void **unused)
{
	const uint32_t count = insert_until_tables_are_full();
	const uint64_t tables = tables_bytes();
	seccomp_filter_note();
	insert(count, MANY);
	assert_int_equal(tables_bytes(), tables);
	assert_true(full() > 0);
	assert_int_equal(take(0, MANY), MANY - full());
}

static void a_limit_is_the_programs(void **unused)
{
	const uint64_t before = place_bytes(), limit = 4 * before;
	assert_int_equal(setrlimit(RLIMIT_AS, &(const struct rlimit){limit, limit}), 0);
	memory_limit_changed(RLIMIT_AS);
	insert(0, 5000);
	assert_int_equal(place_bytes(), before);
	assert_int_equal(full(), 5000 - FEW * REGION_SEGMENT_SLOTS);
}

/* If a program locks its memory, the region may be locked. What is mapped again from a locked mapping is made
 * at once. */
static void of_locked_memory_nothing_is_made_at_once(void **unused)
{
	struct stat status;
	const uint64_t grown = SEGMENTS * sizeof(struct region_segment);

	memory_map_lazily(true);
	assert_int_equal(mlock(place_segment(0), sizeof(struct region_segment)), 0);
	insert(0, 5000);
	assert_int_equal(full(), 0);
	assert_int_equal(fstat(run_region.fd, &status), 0);
	assert_true((uint64_t)status.st_blocks * 512 < grown / 2);
}

/* A thread may still be in a hook, and the file that place_grow() would map is gone. */
static void detached_from_nothing_grows(void **unused)
{
	const uint64_t before = place_bytes();
	claim_detach();
	place_cover_grown();
	insert(0, 5000);
	assert_int_equal(place_bytes(), before);
	assert_int_equal(full(), 5000 - FEW * REGION_SEGMENT_SLOTS);
}

/* Attached again, the program run finds the new region's segments where the last one's were. */
static void another_region_has_its_own_segments(void **unused)
{
	insert(0, 5000);
	struct region_segment *const grown = place_view.segments;
	struct region first = run_region;
	claim_detach();
	live_clear();
	slot_reset();
	start();
	insert(0, 5000);
	assert_int_equal(full(), 0);
	assert_int_equal(live_slots(), 5000);
	assert_ptr_equal(place_view.segments, grown);
	region_close(&first);
}

static bool is_mapped_segment(const struct region_slot *slot)
{
	const struct region_segment *const first = place_view.segments;

	return (const void *)slot >= (const void *)first && (const void *)slot < (const void *)(first + FEW);
}

/* Attached again under a filter: the segments of the last region are nobody's now, and a thread that has one
 * of their numbers, or their address, does no harm. */
static void what_had_grown_is_not_used(void **unused)
{
	enum { LAST_SLOT = SEGMENTS * REGION_SEGMENT_SLOTS - 1 };

	insert(0, 5000);
	struct region_segment *const grown = place_view.segments;
	assert_false(is_mapped_segment(slot_at(LAST_SLOT)));
	struct region first = run_region;
	claim_detach();
	live_clear();
	slot_reset();
	seccomp_filter_note();
	start();
	assert_true(is_mapped_segment(slot_at(LAST_SLOT)));
	assert_true(is_mapped_segment(slot_kept(FEW * REGION_SEGMENT_SLOTS)));
	const struct region_segment *file =
	    (const struct region_segment *)(const void *)(first.base + first.offsets.segments);
	memset(&grown[SEGMENTS - 1], 0xff, sizeof(*grown));
	assert_int_equal(file[SEGMENTS - 1].slots[0].sample.seq, 0);
	region_close(&first);
}

/* A limit was in the way of the last level. Attached again, the program run has none. */
static void another_region_may_have_the_last_level(void **unused)
{
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};

	insert_until_tables_are_full();
	session_note_limit(RLIMIT_AS, &(const struct rlimit){1 << 20, 1 << 20});
	insert(MANY, 2 * MANY);
	const uint64_t tables = tables_bytes();
	assert_true(full() > 0);
	struct region first = run_region;
	claim_detach();
	live_clear();
	slot_reset();
	session_note_limit(RLIMIT_AS, &none);
	start();
	insert(0, MANY);
	assert_int_equal(full(), 0);
	assert_true(tables_bytes() > tables);
	region_close(&first);
}

int main(void)
{
#define STARTED(test) IN_CHILD(test, in_started_child)
	const struct CMUnitTest tests[] = {
	    STARTED(every_sample_has_room),
	    STARTED(a_forked_child_has_what_its_parent_has),
	    STARTED(under_a_filter_nothing_grows),
	    STARTED(under_a_later_filter_tables_do_not_grow),
	    STARTED(a_limit_is_the_programs),
	    STARTED(of_locked_memory_nothing_is_made_at_once),
	    STARTED(detached_from_nothing_grows),
	    STARTED(another_region_has_its_own_segments),
	    STARTED(what_had_grown_is_not_used),
	    STARTED(another_region_may_have_the_last_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The search for a free slot: it finds one wherever it is, and loses none. */
#include "preload/slot.h"

#include "preload/block.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/place_scene.h"

enum { SLOTS = 64 << 10, THREADS = 4 };

/* Fills the region: slots[i] is the number of the slot that was got i-th. */
static uint32_t take_all(uint32_t slots[SLOTS])
{
	uint32_t count = 0, slot;

	while ((slot = slot_take()) != REGION_NO_SLOT) {
		assert_in_range(count, 0, SLOTS - 1);
		slots[count++] = slot;
	}
	return count;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static void check_all_are_there(uint32_t slots[SLOTS])
{
	qsort(slots, SLOTS, sizeof(*slots), by_number);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_int_equal(slots[i], i);
}

/* Blocks that stay, and behind them a queue: its slots are soon all around those of the others. */
static void a_run_of_blocks_that_stay_is_stepped_over(void **unused)
{
	enum { STAY = 5000, QUEUE = 1000 };
	static uint32_t queue[QUEUE];

	for (int i = 0; i < STAY; i++)
		assert_true(slot_take() != REGION_NO_SLOT);
	for (uint32_t i = 0; i < 60000; i++) {
		if (i >= QUEUE)
			slot_give_back(queue[i % QUEUE]);
		queue[i % QUEUE] = slot_take();
		assert_true(queue[i % QUEUE] != REGION_NO_SLOT);
	}
}

static void the_only_free_slot_is_found(void **unused)
{
	static uint32_t slots[SLOTS];

	assert_int_equal(take_all(slots), SLOTS);
	for (uint32_t i = 0; i < 20000; i++) {
		const uint32_t slot = slots[i * 40503u % SLOTS];

		assert_int_equal(slot_take(), REGION_NO_SLOT);
		slot_give_back(slot);
		assert_int_equal(slot_take(), slot);
	}
	check_all_are_there(slots);
}

/* A search for a segment looks at a thousand: no sample after another pays for that, but one in 64. */
static void segments_are_searched_for_now_and_then(void **unused)
{
	enum { OURS = 10, LATER = 20, OTHER_PLACE = 9 };
	_Atomic uint16_t *owners = place_part(place_view.region.offsets.owners);

	for (uint32_t i = OURS; i < run_region.segments; i++)
		owners[i] = OTHER_PLACE;
	for (int i = 0; i <= OURS * REGION_SEGMENT_SLOTS / 2; i++)
		assert_true(slot_take() != REGION_NO_SLOT);
	owners[LATER] = 0;
	assert_true(slot_take() != REGION_NO_SLOT);
	assert_int_equal(owners[LATER], 0);
	for (int i = 0; i < 64; i++)
		assert_true(slot_take() != REGION_NO_SLOT);
	assert_int_equal(owners[LATER], place_index() + 1);
}

static void *take_and_give_back(void *argument)
{
	enum { HELD = SLOTS / THREADS };
	static uint32_t held[THREADS][HELD];
	uint32_t *mine = held[(uintptr_t)argument], random = (uint32_t)(uintptr_t)argument, count = 0;

	for (uint32_t i = 0; i < 300000; i++) {
		random = random * 1664525 + 1013904223;
		if (count < HELD && (i < HELD || random >> 31)) {
			mine[count] = slot_take();
			count += mine[count] != REGION_NO_SLOT;
		} else if (count) {
			const uint32_t at = random / 4 % count;

			slot_give_back(mine[at]);
			mine[at] = mine[--count];
		}
	}
	while (count)
		slot_give_back(mine[--count]);
	return NULL;
}

/* Words and segments were full and were not, again and again: what is left says so of none. */
static void threads_leave_every_slot(void **unused)
{
	static uint32_t slots[SLOTS];
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(take_all(slots), SLOTS);
	check_all_are_there(slots);
}

static _Atomic bool stands_still, may_go_on;

static void protect_owners(int protection)
{
	assert_int_equal(
	    mprotect(place_part(place_view.region.offsets.owners), REGION_PAGE_BYTES, protection), 0);
}

static void stand_still(int signal)
{
	(void)signal;
	protect_owners(PROT_READ | PROT_WRITE);
	atomic_store(&stands_still, true);
	while (!atomic_load(&may_go_on))
		sched_yield();
}

static void *take_half_a_segment(void *slots)
{
	for (uint32_t i = 0; i <= REGION_SEGMENT_SLOTS / 2; i++)
		((uint32_t *)slots)[i] = slot_take();
	return NULL;
}

/* Beside a load it may stand still for longer than others need for all that is left. */
static void nobody_waits_for_who_takes_a_segment(void **unused)
{
	enum { HALF = REGION_SEGMENT_SLOTS / 2 + 1, SEVERAL = 5 * REGION_SEGMENT_SLOTS };
	static uint32_t slots[SEVERAL + SLOTS];
	pthread_t thread;

	signal(SIGSEGV, stand_still);
	protect_owners(PROT_NONE);
	assert_int_equal(pthread_create(&thread, NULL, take_half_a_segment, slots), 0);
	while (!atomic_load(&stands_still))
		sched_yield();
	uint32_t count = HALF;
	for (; count < SEVERAL; count++)
		assert_true((slots[count] = slot_take()) != REGION_NO_SLOT);
	atomic_store(&may_go_on, true);
	pthread_join(thread, NULL);
	assert_int_equal(count + take_all(slots + count), SLOTS);
	check_all_are_there(slots);
}

/* A limit of memory has left room for the notes about a few: the others' segments stay free. */
static void no_more_segments_than_there_is_room_for(void **unused)
{
	enum { FEW = 3 };

	static _Alignas(64) unsigned char memory[1 << 16];
	static uint32_t slots[SLOTS];
	_Atomic uint16_t *owners = place_part(place_view.region.offsets.owners);
	assert_true(slot_bytes(FEW) <= sizeof(memory));
	atomic_store(&owners[0], 0); /* of the notes that are replaced */
	slot_close();
	slot_open(FEW, memory);
	slot_grow();
	assert_int_equal(take_all(slots), FEW * REGION_SEGMENT_SLOTS);
	for (uint32_t i = 0; i < run_region.segments; i++)
		assert_int_equal(owners[i] != 0, i < FEW);
	slot_give_back(slots[7]);
	assert_int_equal(slot_take(), slots[7]);
	slot_close();
	assert_int_equal(slot_take(), REGION_NO_SLOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    ISOLATED(a_run_of_blocks_that_stay_is_stepped_over),
	    ISOLATED(the_only_free_slot_is_found),
	    ISOLATED(segments_are_searched_for_now_and_then),
	    ISOLATED(threads_leave_every_slot),
	    ISOLATED(nobody_waits_for_who_takes_a_segment),
	    ISOLATED(no_more_segments_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

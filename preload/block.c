/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/block.h"

#include "preload/last_level.h"
#include "preload/one_thread.h"
#include "preload/place.h"
#include "preload/sample.h"
#include "preload/sample_clock.h"
#include "preload/slot.h"
#include "preload/tally.h"
#include "preload/thread.h"

#include <stdatomic.h>

static uint64_t next_seq(void)
{
	return one_thread_fetch_add(&place_self()->next_seq, 1);
}

static void leave_books(const struct live_entry *entry)
{
	if (!slot_is_mine(entry))
		return;
	slot_give_back(entry->sample.slot);
	tally_live_subtract(tally_weight(entry));
}

static void log_free(const struct live_entry *entry)
{
	uint64_t at = atomic_fetch_add_explicit(&place_header()->frees_head, 1, memory_order_relaxed);
	struct region_free *entry_free =
	    (struct region_free *)place_part(place_view.region.offsets.frees) + at % REGION_FREES;
	/* Another writer may have been interrupted here while the ring wrapped around: then one of the two
	 * entries is lost, but none is a mixture of both. */
	uint64_t old = atomic_load_explicit(&entry_free->word, memory_order_relaxed);

	if (old == REGION_FREE_BUSY || old > at ||
	    !atomic_compare_exchange_strong(&entry_free->word, &old, REGION_FREE_BUSY))
		return;
	atomic_thread_fence(memory_order_release);
	entry_free->sample = entry->sample;
	entry_free->freed_ns = sample_clock_read_ns();
	entry_free->freed_tid = thread_tid();
	entry_free->place = place_index();
	atomic_store_explicit(&entry_free->word, at + 1, memory_order_release);
}

void block_remove(const struct live_entry *entry)
{
	sample_enter();
	if (slot_is_mine(entry)) {
		leave_books(entry);
		log_free(entry);
	}
	sample_leave();
}

bool block_enter(struct live_entry *entry, const void *pointer, bool room)
{
	struct region_sample *sample = &entry->sample;
	struct weighed weight = weigh(sample->size_bytes, UINT64_MAX, sample->period_bytes);

	sample->seq = next_seq();
	entry->place = place_tag();
	tally_allocated(weight);
	sample->slot = room ? slot_take() : REGION_NO_SLOT;
	if (sample->slot == REGION_NO_SLOT) {
		tally_lost(REGION_LOSS_TABLE_FULL, sample);
		return false;
	}
	slot_write(entry, pointer, sample, 0, 0);
	tally_live_add(weight, sample->time_ns, sample->seq);
	return true;
}

void block_insert(const void *pointer, struct live_entry *entry)
{
	struct live_entry stale;

	if (!block_enter(entry, pointer, true))
		return;
	uint32_t result = live_put(pointer, entry, &stale);
	if (result & LIVE_PUT_STALE) {
		leave_books(&stale);
		tally_lost(REGION_LOSS_STALE, &stale.sample);
	}
	if (result & LIVE_PUT_FULL && last_level_add())
		result = live_put(pointer, entry, &stale);
	if (result & LIVE_PUT_FULL) {
		/* Its free could not be recognized, so the block must not count as live. */
		leave_books(entry);
		entry->sample.slot = REGION_NO_SLOT;
		tally_lost(REGION_LOSS_TABLE_FULL, &entry->sample);
	}
}

void block_restore(const void *pointer, const struct live_entry *entry)
{
	struct live_entry stale;

	sample_enter();
	if (live_put(pointer, entry, &stale) & LIVE_PUT_FULL) {
		leave_books(entry);
		if (entry->place == place_tag())
			tally_lost(REGION_LOSS_TABLE_FULL, &entry->sample);
	}
	sample_leave();
}

bool block_inherit(const void *pointer, struct live_entry *entry)
{
	/* Whatever place it names: that of a parent that has ended may be ours now. */
	if (entry->sample.slot == REGION_NO_SLOT)
		return true;
	struct live_entry mine = *entry;
	mine.sample.slot = slot_take();
	if (mine.sample.slot == REGION_NO_SLOT) {
		tally_lost(REGION_LOSS_TABLE_FULL, &entry->sample);
		return false;
	}
	mine.sample.seq = next_seq();
	mine.sample.stack = 0; /* its stack is the parent's: known by this slot from now on */
	mine.place = place_tag();
	slot_write(&mine, pointer, &entry->sample, SLOT_INHERITED, place_tag_index(entry->place));
	/* A peak of what was inherited is as old as this process, not as the last of these blocks. */
	tally_live_add(tally_weight(&mine), place_self()->start_ns, mine.sample.seq);
	place_self()->inherited++;
	*entry = mine;
	return true;
}

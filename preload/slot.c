/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/slot.h"

#include "preload/one_thread.h"

#include <stdatomic.h>

enum {
	WORD_SLOTS = 64,
	SEGMENT_WORDS = REGION_SEGMENT_SLOTS / WORD_SLOTS,
	/* bound of the search for a free slot: a region's usual 1,024 segments, all full, and two by words */
	SEARCH_STEPS = 1024 + 2 * SEGMENT_WORDS,
	/* after a search for a segment, a look at each, that found none: so many samples later again */
	GROW_AGAIN = 64,
};

/*
 * The segments that this process owns. `unused` has a bit for each of their slots that is free, and none
 * until the segment is ready: so several threads may take segments at the same time.
 */
static uint32_t segments_most;
static _Atomic uint64_t (*unused)[SEGMENT_WORDS]; /* by index into segments[] */
static _Atomic uint32_t *usable_words;            /* of a segment's words in `unused` */
static uint16_t *segments;
static uint16_t *segment_index; /* the reverse: index into segments[] of a region's segment */
static _Atomic uint32_t segments_owned, segments_growing;
static _Atomic uint32_t unused_count; /* as an int32_t: less than none while a segment becomes ready */
static _Atomic uint32_t cursor;       /* word of `unused` where the search begins */
static _Atomic uint32_t grow_later;   /* samples until the next search for a segment */

size_t slot_bytes(uint32_t count)
{
	const size_t bytes = count * (sizeof(*unused) + sizeof(*usable_words) + sizeof(*segments)) +
	    REGION_SEGMENTS * sizeof(*segment_index);

	return (bytes + 63) & ~(size_t)63;
}

void slot_open(uint32_t count, void *memory)
{
	unused = memory;
	usable_words = (_Atomic uint32_t *)(void *)(unused + count);
	segments = (uint16_t *)(void *)(usable_words + count);
	segment_index = segments + count;
	segments_most = count;
}

void slot_close(void)
{
	segments_most = 0;
	atomic_store(&segments_owned, 0);
	atomic_store(&unused_count, 0);
}

void slot_reset(void)
{
	const uint32_t owned = atomic_load(&segments_owned);

	for (uint32_t i = 0; i < owned; i++) {
		for (uint32_t w = 0; w < SEGMENT_WORDS; w++)
			atomic_store(&unused[i][w], 0);
		atomic_store(&usable_words[i], 0);
	}
	atomic_store(&segments_owned, 0);
	atomic_store(&segments_growing, 0);
	atomic_store(&unused_count, 0);
	atomic_store(&cursor, 0);
	atomic_store(&grow_later, 0);
}

/* False: there is no room for the notes about another segment. */
static bool add_segment(uint32_t number)
{
	uint32_t at = atomic_load(&segments_owned);

	do
		if (at >= segments_most)
			return false;
	while (!atomic_compare_exchange_weak(&segments_owned, &at, at + 1));
	segments[at] = (uint16_t)number;
	segment_index[number] = (uint16_t)at;
	atomic_store(&usable_words[at], SEGMENT_WORDS);
	for (uint32_t w = 0; w < SEGMENT_WORDS; w++)
		atomic_store(&unused[at][w], UINT64_MAX);
	atomic_fetch_add(&unused_count, REGION_SEGMENT_SLOTS);
	return true;
}

/* About so many are free: it changes after the bits. */
static uint32_t count_unused(void)
{
	const uint32_t count = atomic_load_explicit(&unused_count, memory_order_relaxed);

	return (int32_t)count > 0 ? count : 0;
}

/* The next search for a segment comes GROW_AGAIN samples later. */
static bool is_nearly_full(void)
{
	return count_unused() < 4 * GROW_AGAIN;
}

static void find_segment(void)
{
	_Atomic uint16_t *owners = place_part(place_view.region.offsets.owners);

	for (uint32_t i = 0;
	     i < place_segments_at(atomic_load(&place_view.segments)) || (is_nearly_full() && place_grow());
	     i++) {
		uint16_t nobody = 0;

		if (atomic_load_explicit(&owners[i], memory_order_relaxed) != 0 ||
		    !atomic_compare_exchange_strong(&owners[i], &nobody, (uint16_t)(place_index() + 1)))
			continue;
		if (!add_segment(i)) {
			atomic_store(&owners[i], 0);
			break;
		}
		atomic_store(&grow_later, 0);
		return;
	}
	atomic_store(&grow_later, GROW_AGAIN);
}

/* One thread at a time; others return without a new segment. */
void slot_grow(void)
{
	if (atomic_exchange(&segments_growing, 1))
		return;
	find_segment();
	atomic_store(&segments_growing, 0);
}

/* Threads that count down at the same time may make it later, or sooner. */
static bool may_grow(void)
{
	const uint32_t later = atomic_load_explicit(&grow_later, memory_order_relaxed);

	if (later)
		atomic_store_explicit(&grow_later, later - 1, memory_order_relaxed);
	return !later;
}

/* A free slot of a word, or REGION_NO_SLOT. */
static uint32_t take_from(uint32_t word)
{
	const uint32_t segment = word / SEGMENT_WORDS;
	_Atomic uint64_t *bits = &unused[segment][word % SEGMENT_WORDS];
	uint64_t old = atomic_load(bits);

	while (old) {
		const uint32_t bit = (uint32_t)__builtin_ctzll(old);
		const uint64_t rest = old & ~(1ull << bit);

		if (!one_thread_exchange64(bits, &old, rest))
			continue;
		one_thread_add32(&unused_count, UINT32_MAX);
		if (!rest)
			one_thread_add32(&usable_words[segment], UINT32_MAX);
		atomic_store_explicit(&cursor, bit == WORD_SLOTS - 1 ? word + 1 : word, memory_order_relaxed);
		return segments[segment] * (uint32_t)REGION_SEGMENT_SLOTS +
		    (word % SEGMENT_WORDS) * WORD_SLOTS + bit;
	}
	return REGION_NO_SLOT;
}

/* The next word that may have a free slot. Blocks that stay fill whole segments, each of which is one step.
 * Changes of the count may come in another order than those of the words, but in the end it is right. */
static uint32_t word_after(uint32_t word)
{
	const uint32_t segment = word / SEGMENT_WORDS;

	return atomic_load_explicit(&usable_words[segment], memory_order_relaxed) == 0
	    ? (segment + 1) * SEGMENT_WORDS
	    : word + 1;
}

/* The cursor wraps around, so that a slot is reused as late as possible: a stack that arrives late can still
 * be assigned to the slot's previous block, which the sampler remembers. */
static uint32_t find_unused(void)
{
	if (!count_unused())
		return REGION_NO_SLOT;
	const uint32_t words = atomic_load(&segments_owned) * SEGMENT_WORDS;
	uint32_t word = atomic_load_explicit(&cursor, memory_order_relaxed);
	for (uint32_t n = 0; n < SEARCH_STEPS && n < words; n++) {
		if (word >= words)
			word = 0;
		const uint32_t slot = take_from(word);
		if (slot != REGION_NO_SLOT)
			return slot;
		word = word_after(word);
	}
	atomic_store_explicit(&cursor, word, memory_order_relaxed); /* the next search goes on there */
	return REGION_NO_SLOT;
}

/* Is it time for another segment? */
static bool is_short(void)
{
	return count_unused() * 2 <= atomic_load(&segments_owned) * REGION_SEGMENT_SLOTS;
}

uint32_t slot_take(void)
{
	if (is_short() && may_grow())
		slot_grow();
	const uint32_t slot = find_unused();
	/* Whoever takes a segment may have lost its processor meanwhile: beside a load others use up the half
	 * that is left. */
	if (slot != REGION_NO_SLOT || !is_short() || atomic_load(&grow_later))
		return slot;
	find_segment();
	return find_unused();
}

void slot_give_back(uint32_t number)
{
	uint32_t in_segment = number % REGION_SEGMENT_SLOTS;
	uint32_t at = segment_index[number / REGION_SEGMENT_SLOTS];
	struct region_slot *slot = slot_at(number);
	uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
	uint64_t order = one_thread_fetch_add(&place_self()->next_seq, 1);

	atomic_store_explicit(&slot->freed_order, order, memory_order_relaxed);
	atomic_store_explicit(&slot->word, slot_word(slot_word_seq(word), SLOT_FREED), memory_order_release);
	_Atomic uint64_t *bits = &unused[at][in_segment / WORD_SLOTS];
	uint64_t old = atomic_load_explicit(bits, memory_order_relaxed);
	while (!one_thread_exchange64(bits, &old, old | 1ull << in_segment % WORD_SLOTS))
		;
	if (!old)
		one_thread_add32(&usable_words[at], 1);
	one_thread_add32(&unused_count, 1);
}

/* Before a slot is used again: keeps the description of a block that was live at the peak
 * (proto/region.h). */
static void keep_peak(uint32_t number)
{
	const struct region_slot *slot = slot_at(number);
	struct region_slot *kept = slot_kept(number);
	uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
	uint64_t peak = atomic_load_explicit(&place_self()->peak_order, memory_order_relaxed);

	if (slot_word_state(word) != SLOT_FREED || slot_word_seq(word) >= peak || slot->freed_order < peak)
		return;
	if (kept->word == word && kept->freed_order >= peak)
		return; /* a mapping, as it was at the peak (mapping.c) */
	atomic_store_explicit(&kept->word, SLOT_WRITING, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&kept->freed_order, slot->freed_order, memory_order_relaxed);
	kept->sample = slot->sample;
	kept->flags = slot->flags;
	kept->unmapped_pages = slot->unmapped_pages;
	atomic_store_explicit(&kept->word, word, memory_order_release);
}

void slot_write(const struct live_entry *entry, const void *pointer, const struct region_sample *sample,
    uint16_t flags, uint32_t origin_place)
{
	struct region_slot *slot = slot_at(entry->sample.slot);

	keep_peak(entry->sample.slot);
	atomic_store_explicit(&slot->word, slot_word(entry->sample.seq, SLOT_WRITING), memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	slot->sample = *sample;
	slot->flags = entry->flags | flags;
	slot->origin_place = (uint16_t)origin_place;
	slot->unmapped_pages = entry->unmapped_pages;
	atomic_store_explicit(slot_address(entry->sample.slot), (uintptr_t)pointer, memory_order_relaxed);
	atomic_store_explicit(&slot->word, slot_word(entry->sample.seq, SLOT_LIVE), memory_order_release);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/mapping.h"

#include "preload/block.h"
#include "preload/slot.h"
#include "preload/tally.h"

#include <stdatomic.h>

enum {
	MAPPINGS = 16384,            /* mappings that exist at the same time */
	RESERVED_MAX = MAPPINGS / 2, /* of these, reservations: samples have room beside them */
	NO_MAPPING = MAPPINGS,
	KIND_BITS = 2,
	SMALL_PIECES = 15,
	SMALL_SHAPES = 4096,
	LARGE_PIECES = 1023,
	LARGE_SHAPES = 128,

	/* the low bits of a mapping's word */
	SHAPE_EMPTY = 0, /* no mapping here */
	SHAPE_BUSY = 1,  /* being entered */
	SHAPE_GONE = 2,  /* no page is left; a thread is still correcting slot and tallies */
	SHAPE_WHOLE = 3,
	SHAPE_LIST = 4, /* from this value on: number of a shape */
	SHAPE_MASK = 0xffff,
};

/* The rest of the word: how many threads are correcting slot and tallies, and a count of changes, so that no
 * value is used twice. */
#define WORD_USER   (1ull << 16)
#define WORD_USERS  (0xffffull << 16)
#define WORD_CHANGE (1ull << 32)

/* Read often, therefore separate from the entries. In pages of REGION_PAGE_BYTES. */
struct range {
	_Atomic uint64_t word;
	_Atomic uint64_t first, pages;
	_Atomic uint64_t born; /* moment << KIND_BITS | enum mapping_kind */
};

/* The memory of mapping_open. */
struct book {
	/* [0]: number of pieces; then each first << 32 | end, in pages from the mapping's first. */
	_Alignas(64) _Atomic uint64_t small_shapes[SMALL_SHAPES][SMALL_PIECES + 1];
	_Atomic uint64_t large_shapes[LARGE_SHAPES][LARGE_PIECES + 1];
	struct range ranges[MAPPINGS];
	struct live_entry entries[MAPPINGS]; /* written only by a user of the range's word */
	_Atomic uint64_t shapes_taken[(SMALL_SHAPES + LARGE_SHAPES) / 64];
};
static struct book *book;
static _Atomic uint32_t ranges_room; /* how many ranges there are: MAPPINGS or none */
static _Atomic uint32_t ranges_used; /* ranges that have ever been in use */
static _Atomic uint32_t ranges_hint; /* where an empty one may be */
static _Atomic uint32_t reserved;    /* reservations that exist */
static _Atomic uint64_t moment;

size_t mapping_bytes(void)
{
	return sizeof(struct book);
}

void mapping_open(void *memory)
{
	book = memory;
	atomic_store(&ranges_room, MAPPINGS);
}

bool mapping_is_open(void)
{
	return atomic_load(&ranges_room) != 0;
}

/* Who is in one of these functions, below a signal handler that has called this, finds an empty book. */
void mapping_close(void)
{
	atomic_store(&ranges_room, 0);
	atomic_store(&ranges_used, 0);
	atomic_store(&reserved, 0);
}

uint64_t mapping_moment(void)
{
	return atomic_fetch_add(&moment, 1) + 1;
}

/* ---- shapes */

static _Atomic uint64_t *shape_at(uint32_t shape, uint32_t *room)
{
	uint32_t number = shape - SHAPE_LIST;

	*room = number < SMALL_SHAPES ? SMALL_PIECES : LARGE_PIECES;
	return number < SMALL_SHAPES ? book->small_shapes[number]
	                             : book->large_shapes[(number - SMALL_SHAPES) % LARGE_SHAPES];
}

static uint32_t shape_take(uint32_t pieces)
{
	uint32_t from = pieces <= SMALL_PIECES ? 0 : SMALL_SHAPES,
	         to = from ? SMALL_SHAPES + LARGE_SHAPES : SMALL_SHAPES;

	for (uint32_t at = from; at < to && pieces <= LARGE_PIECES; at += 64) {
		uint64_t taken = atomic_load_explicit(&book->shapes_taken[at / 64], memory_order_relaxed);

		while (~taken) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~taken);

			if (atomic_compare_exchange_weak(
			        &book->shapes_taken[at / 64], &taken, taken | 1ull << bit))
				return SHAPE_LIST + at + bit;
		}
	}
	return SHAPE_EMPTY;
}

static void shape_give_back(uint32_t shape)
{
	if (shape >= SHAPE_LIST)
		atomic_fetch_and(
		    &book->shapes_taken[(shape - SHAPE_LIST) / 64], ~(1ull << (shape - SHAPE_LIST) % 64));
}

/* What is left of a shape when [from, to) is taken out: the number of pages before, and pieces and pages
 * after. `into` may be NULL. The shape may be freed and reused while it is read: the result is wrong then,
 * but within bounds. */
struct cut {
	uint64_t before, after;
	uint32_t pieces;
};

static void cut_piece(struct cut *cut, uint64_t first, uint64_t end, _Atomic uint64_t *into, uint32_t room)
{
	if (first >= end)
		return;
	cut->after += end - first;
	cut->pieces++;
	if (into && cut->pieces <= room)
		atomic_store_explicit(&into[cut->pieces], first << 32 | end, memory_order_relaxed);
}

static struct cut cut_shape(
    uint32_t shape, uint64_t pages, uint64_t from, uint64_t to, _Atomic uint64_t *into, uint32_t into_room)
{
	struct cut cut = {0};
	uint32_t room = 1;
	_Atomic uint64_t *list = shape >= SHAPE_LIST ? shape_at(shape, &room) : NULL;
	uint64_t count = list ? atomic_load_explicit(&list[0], memory_order_relaxed) : 1;

	for (uint64_t i = 1; i <= count && i <= room; i++) {
		uint64_t piece = list ? atomic_load_explicit(&list[i], memory_order_relaxed) : pages;
		uint64_t first = piece >> 32, end = piece & UINT32_MAX;

		cut.before += end - first;
		cut_piece(&cut, first, end < from ? end : from, into, into_room);
		cut_piece(&cut, first > to ? first : to, end, into, into_room);
	}
	if (into)
		atomic_store_explicit(&into[0], cut.pieces, memory_order_relaxed);
	return cut;
}

/* ---- the books */

/* Writes the slot's entry for the peak, if the mapping existed at the peak and now loses its first pages
 * since then. */
static void keep_peak(const struct live_entry *entry, uint32_t unmapped_before)
{
	const struct region_slot *slot = slot_at(entry->sample.slot);
	struct region_slot *kept = slot_kept(entry->sample.slot);
	struct region_place *place = place_self();
	uint64_t peak = atomic_load_explicit(&place->peak_order, memory_order_relaxed);
	uint64_t whose = slot_word(entry->sample.seq, SLOT_FREED);
	uint64_t old = atomic_load_explicit(&kept->word, memory_order_relaxed);

	if (entry->sample.seq >= peak || slot_word_state(old) == SLOT_WRITING ||
	    !atomic_compare_exchange_strong(&kept->word, &old, SLOT_WRITING))
		return;
	if (old == whose && kept->freed_order >= peak && kept->unmapped_pages <= unmapped_before) {
		atomic_store_explicit(&kept->word, old, memory_order_release);
		return;
	}
	atomic_thread_fence(memory_order_release);
	kept->freed_order = atomic_fetch_add_explicit(&place->next_seq, 1, memory_order_relaxed);
	kept->sample = slot->sample;
	kept->flags = slot->flags;
	kept->unmapped_pages = unmapped_before;
	atomic_store_explicit(&kept->word, whose, memory_order_release);
}

static void raise_unmapped(struct region_slot *slot, uint32_t unmapped)
{
	uint32_t old = atomic_load_explicit(&slot->unmapped_pages, memory_order_relaxed);

	while (old < unmapped && !atomic_compare_exchange_weak(&slot->unmapped_pages, &old, unmapped))
		;
}

/* Pages of a mapping were unmapped. */
static void account(const struct live_entry *entry, uint64_t before, uint64_t after)
{
	if (!slot_is_mine(entry))
		return;
	uint64_t all = entry->sample.size_bytes / REGION_PAGE_BYTES;
	struct live_entry then = *entry, now = *entry;
	then.unmapped_pages = (uint32_t)(all - before);
	now.unmapped_pages = (uint32_t)(all - after);
	if (after)
		keep_peak(entry, then.unmapped_pages);
	if (!after) /* the rest is removed with the slot, which describes it until then */
		return;
	raise_unmapped(slot_at(entry->sample.slot), now.unmapped_pages);
	tally_live_shrink(tally_weight(&then), tally_weight(&now));
}

static enum mapping_kind kind_of(uint64_t born)
{
	return (enum mapping_kind)(born & ((1u << KIND_BITS) - 1));
}

/* Called by the last thread that corrects slot and tallies of a mapping with no page left. */
static void end_mapping(uint32_t at)
{
	struct range *range = &book->ranges[at];
	struct live_entry entry = book->entries[at];

	if (slot_is_mine(&entry)) {
		entry.unmapped_pages = atomic_load(&slot_at(entry.sample.slot)->unmapped_pages);
		block_remove(&entry);
	}
	if (kind_of(atomic_load_explicit(&range->born, memory_order_relaxed)) == MAPPING_RESERVED)
		atomic_fetch_sub(&reserved, 1);
	uint64_t word = atomic_load_explicit(&range->word, memory_order_relaxed);
	atomic_store_explicit(&range->word, (word & ~(WORD_CHANGE - 1)) + WORD_CHANGE, memory_order_release);
	uint32_t hint = atomic_load_explicit(&ranges_hint, memory_order_relaxed);
	while (at < hint && !atomic_compare_exchange_weak(&ranges_hint, &hint, at))
		;
}

static void leave(uint32_t at)
{
	uint64_t word = atomic_fetch_sub(&book->ranges[at].word, WORD_USER) - WORD_USER;

	if ((word & (WORD_USERS | SHAPE_MASK)) == SHAPE_GONE)
		end_mapping(at);
}

static void lose(const struct live_entry *entry, uint64_t pages)
{
	struct region_sample part = entry->sample;

	part.size_bytes = pages * REGION_PAGE_BYTES;
	if (slot_is_mine(entry))
		tally_lost(REGION_LOSS_TABLE_FULL, &part);
}

/* ---- ranges */

/* Reads the fields that belong to a range's word; false: the word has changed meanwhile. */
static bool read_range(
    const struct range *range, uint64_t word, uint64_t *first, uint64_t *pages, uint64_t *born)
{
	*first = atomic_load_explicit(&range->first, memory_order_relaxed);
	*pages = atomic_load_explicit(&range->pages, memory_order_relaxed);
	*born = atomic_load_explicit(&range->born, memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&range->word, memory_order_relaxed) == word;
}

/* Removes pages [from, to) of the address space from a mapping, as far as they are in it. samples: from a
 * sampled one alone. */
static void trim(uint32_t at, uint64_t from, uint64_t to, uint64_t before, bool samples)
{
	struct range *range = &book->ranges[at];

	for (;;) {
		uint64_t word = atomic_load_explicit(&range->word, memory_order_acquire), first, pages, born;
		uint32_t shape = word & SHAPE_MASK, room;

		if (shape < SHAPE_WHOLE)
			return;
		if (!read_range(range, word, &first, &pages, &born))
			continue;
		if (born >> KIND_BITS >= before || to <= first || from >= first + pages ||
		    (samples && kind_of(born) != MAPPING_SAMPLED))
			return;
		uint64_t low = from > first ? from - first : 0,
		         high = to - first < pages ? to - first : pages;
		struct cut cut = cut_shape(shape, pages, low, high, NULL, 0);
		if (cut.before == cut.after) {
			if (atomic_load_explicit(&range->word, memory_order_acquire) == word)
				return;
			continue;
		}
		uint32_t next = cut.pieces ? shape_take(cut.pieces) : SHAPE_GONE;
		bool lost = next == SHAPE_EMPTY;
		if (next >= SHAPE_LIST) {
			_Atomic uint64_t *list = shape_at(next, &room);

			cut = cut_shape(shape, pages, low, high, list, room);
		}
		uint64_t swapped =
		    (word & ~(uint64_t)SHAPE_MASK) + WORD_CHANGE + WORD_USER + (lost ? SHAPE_GONE : next);
		if (!atomic_compare_exchange_strong(&range->word, &word, swapped)) {
			shape_give_back(next);
			continue;
		}
		shape_give_back(shape);
		if (lost)
			lose(&book->entries[at], cut.after);
		account(&book->entries[at], cut.before, lost ? 0 : cut.after);
		leave(at);
		return;
	}
}

static void remove_pages(const void *start, uint64_t bytes, uint64_t before, bool samples)
{
	uint64_t from = (uintptr_t)start / REGION_PAGE_BYTES, to = from + bytes / REGION_PAGE_BYTES;
	uint32_t used = atomic_load(&ranges_used);

	for (uint32_t i = 0; i < used; i++) {
		uint64_t first = atomic_load_explicit(&book->ranges[i].first, memory_order_relaxed);

		if (first < to &&
		    from < first + atomic_load_explicit(&book->ranges[i].pages, memory_order_relaxed))
			trim(i, from, to, before, samples);
	}
}

void mapping_remove(const void *start, uint64_t bytes, uint64_t before)
{
	remove_pages(start, bytes, before, false);
}

void mapping_remove_samples(const void *start, uint64_t bytes, uint64_t before)
{
	remove_pages(start, bytes, before, true);
}

/* The next empty range from `at` on, marked busy; NO_MAPPING: there is none. */
static uint32_t range_take_from(uint32_t at)
{
	for (; at < atomic_load_explicit(&ranges_room, memory_order_relaxed); at++) {
		uint32_t used = atomic_load(&ranges_used);

		while (at >= used && !atomic_compare_exchange_weak(&ranges_used, &used, at + 1))
			;
		uint64_t word = atomic_load_explicit(&book->ranges[at].word, memory_order_relaxed);
		if ((word & SHAPE_MASK) == SHAPE_EMPTY &&
		    atomic_compare_exchange_strong(
		        &book->ranges[at].word, &word, word + WORD_CHANGE + SHAPE_BUSY)) {
			atomic_store_explicit(&ranges_hint, at + 1, memory_order_relaxed);
			return at;
		}
	}
	return NO_MAPPING;
}

static uint32_t range_take(uint64_t bytes)
{
	if (bytes / REGION_PAGE_BYTES > UINT32_MAX)
		return NO_MAPPING; /* 16 TiB */
	uint32_t hint = atomic_load_explicit(&ranges_hint, memory_order_relaxed), at = range_take_from(hint);
	return at == NO_MAPPING && hint ? range_take_from(0) : at;
}

static void range_fill(uint32_t at, const void *start, uint64_t bytes, enum mapping_kind kind)
{
	struct range *range = &book->ranges[at];

	atomic_store_explicit(&range->first, (uintptr_t)start / REGION_PAGE_BYTES, memory_order_relaxed);
	atomic_store_explicit(&range->pages, bytes / REGION_PAGE_BYTES, memory_order_relaxed);
	atomic_store_explicit(&range->born, mapping_moment() << KIND_BITS | kind, memory_order_relaxed);
	uint64_t word = atomic_load_explicit(&range->word, memory_order_relaxed);
	atomic_store_explicit(
	    &range->word, (word & ~(WORD_CHANGE - 1)) + WORD_CHANGE + SHAPE_WHOLE, memory_order_release);
}

void mapping_insert(const void *start, uint64_t bytes, struct live_entry *entry)
{
	uint32_t at = range_take(bytes);
	bool entered = block_enter(entry, start, at != NO_MAPPING);

	if (at == NO_MAPPING)
		return;
	book->entries[at] = *entry;
	atomic_store_explicit(&book->ranges[at].born, MAPPING_SAMPLED, memory_order_relaxed);
	if (entered)
		range_fill(at, start, bytes, MAPPING_SAMPLED);
	else
		end_mapping(at);
}

bool mapping_insert_other(const void *start, uint64_t bytes, enum mapping_kind kind)
{
	const bool counted = kind == MAPPING_RESERVED;
	bool room = !counted || atomic_fetch_add(&reserved, 1) < RESERVED_MAX;
	uint32_t at = room ? range_take(bytes) : NO_MAPPING;

	if (at == NO_MAPPING) {
		if (counted)
			atomic_fetch_sub(&reserved, 1);
		return false;
	}
	book->entries[at] = (struct live_entry){.sample.slot = REGION_NO_SLOT};
	range_fill(at, start, bytes, kind);
	return true;
}

/* Has the range a page of [from, to), which are pages of the address space? */
static bool range_has(const struct range *range, uint64_t from, uint64_t to, enum mapping_kind kind)
{
	uint64_t word = atomic_load_explicit(&range->word, memory_order_acquire), first, pages, born;

	if ((word & SHAPE_MASK) < SHAPE_WHOLE || !read_range(range, word, &first, &pages, &born) ||
	    kind_of(born) != kind || to <= first || from >= first + pages)
		return false;
	struct cut without = cut_shape(word & SHAPE_MASK, pages, from > first ? from - first : 0,
	    to - first < pages ? to - first : pages, NULL, 0);
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&range->word, memory_order_relaxed) == word &&
	    without.after != without.before;
}

bool mapping_has(const void *start, uint64_t bytes, enum mapping_kind kind)
{
	uint64_t from = (uintptr_t)start / REGION_PAGE_BYTES, to = from + bytes / REGION_PAGE_BYTES;
	uint32_t used = atomic_load(&ranges_used);

	for (uint32_t i = 0; i < used; i++)
		if (range_has(&book->ranges[i], from, to, kind))
			return true;
	return false;
}

void mapping_inherit(void)
{
	uint32_t used = atomic_load(&ranges_used), reservations = 0;

	for (uint32_t i = 0; i < used; i++) {
		struct range *range = &book->ranges[i];
		uint64_t word = atomic_load(&range->word);
		uint32_t shape = word & SHAPE_MASK;

		/* The parent's threads that were working on it do not exist here. */
		word = (word & ~(WORD_CHANGE - 1)) + WORD_CHANGE;
		if (shape >= SHAPE_WHOLE && book->entries[i].sample.slot != REGION_NO_SLOT) {
			uint64_t pages = atomic_load(&range->pages);

			book->entries[i].unmapped_pages =
			    (uint32_t)(pages - cut_shape(shape, pages, pages, pages, NULL, 0).after);
			const void *start = (const void *)(atomic_load(&range->first) * REGION_PAGE_BYTES);
			if (!block_inherit(start, &book->entries[i])) {
				shape_give_back(shape);
				shape = SHAPE_EMPTY;
			}
		}
		atomic_store(&range->word, word + (shape >= SHAPE_WHOLE ? shape : SHAPE_EMPTY));
		reservations +=
		    shape >= SHAPE_WHOLE && kind_of(atomic_load(&range->born)) == MAPPING_RESERVED;
	}
	atomic_store(&reserved, reservations);
	atomic_store(&ranges_hint, 0);
}

void mapping_clear(void)
{
	mapping_remove(NULL, UINTPTR_MAX & ~(uintptr_t)(REGION_PAGE_BYTES - 1), UINT64_MAX);
}

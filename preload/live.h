/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this pointer a sampled block? The tables are private memory of the process. So a forked child has an
 * exact copy of what was live at the fork, whatever its parent does next.
 *
 * Four steps, because nearly every free is of a block that was never sampled:
 *
 *   spans    one counting byte for 8 KiB of addresses; addresses far apart share one. Zero means "nothing
 *            sampled there". 64 bytes of it stand for 512 KiB of heap, so it stays in the first cache
 *            whatever the program frees.
 *   filter   one counting byte for each position of the address, scaled to 32 bytes for each live sample.
 *            When a level is full, about 3 % of the frees that reach the filter go on to `confirm`.
 *   confirm  a second filter of the same size, where other blocks are neighbours. It lets 3 % of those frees
 *            through.
 *   index    buckets of eight keys (one cache line). An address lives in one of four neighbouring buckets,
 *            near the addresses around it. If these are full, it lives in one of two other groups of four.
 *            So a lookup reads 96 words at most, mostly 8. Removing is a store of zero: there are no
 *            tombstones, and nothing decays with use.
 *
 * Filter, confirm and index have levels. The first serves 4 K live samples (2 GiB of heap at the default
 * period), the second 64 K, and the third as many as the period may need. When a level is full, new entries
 * go to the next; nothing ever moves. All levels share the spans, so free() itself always tests one byte.
 *
 * tables.h gives the memory when there is a region; the third level may get its memory later. Until then the
 * spans are one byte, which is zero.
 *
 * All operations are lock-free and safe against signal handlers and threads that die in the middle. A key is
 * 0 (empty), 1 (busy) or an address; a thread that dies while it holds a key busy leaks that one entry.
 */
#ifndef PRELOAD_LIVE_H
#define PRELOAD_LIVE_H

#include "proto/region.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LIVE_LEVELS = 3,
	LIVE_SPAN_SHIFT = 13,
};

/* The size of the tables: the number of levels, and the keys in each. */
struct live_size {
	uint32_t levels;
	uint32_t first_bits; /* of the first level's number of keys */
	uint32_t last_bits;  /* of the third level's */
};

struct live_entry {
	struct region_sample sample;
	uint16_t place; /* tag of the slot's owner: a child must not clear its parent's slots (place.h) */
	uint16_t flags; /* enum slot_flags */
	uint32_t unmapped_pages; /* SLOT_MMAP: as in struct region_slot */
};

struct live_spans {
	uintptr_t mask; /* number of spans - 1 */
	uint8_t counts[];
};

/* Never NULL. Mask and counts are behind one pointer, so a reader gets a matching pair. */
extern const struct live_spans *live_spans;

/* False: certainly not sampled. At the default period one span in 64 holds a sample, at 64 KiB one in 8. The
 * filter is not tested here: it has a cache line for each KiB of heap, and each level has a filter. */
static inline bool live_maybe(const void *pointer)
{
	const struct live_spans *spans = __atomic_load_n(&live_spans, __ATOMIC_RELAXED);

	return __atomic_load_n(&spans->counts[(uintptr_t)pointer >> LIVE_SPAN_SHIFT & spans->mask],
	           __ATOMIC_RELAXED) != 0;
}

/* Call it after live_maybe() returned true. Tests filter and confirm of each level: one free in a thousand of
 * unsampled blocks passes. */
bool live_maybe_here(const void *pointer);

/* The size for the live samples of 32 GiB of heap, for at most a million samples. */
struct live_size live_size_for(uint64_t period_bytes);

/* Makes a size smaller. False: it is the smallest. */
bool live_size_lower(struct live_size *size);

/* How many live samples there is room for. */
uint32_t live_size_samples(const struct live_size *size);

/* Bytes that live_open needs for spans and first level, a multiple of 64, and for the levels above. */
size_t live_first_bytes(const struct live_size *size);
size_t live_above_bytes(const struct live_size *size);

/* Gives the tables their memory: zeroed, private. `first` is aligned to 64 bytes. */
void live_open(const struct live_size *size, void *first, void *above);

/* Takes the memory away from levels above the first that are not in use, for good. Returns how many bytes of
 * the memory above stay in use. */
size_t live_give_back(void);

/* If there are two levels and both are in use: the bytes of a third one, for a million samples; else 0. */
size_t live_last_bytes(void);

/* Gives the third level its memory: zeroed, private. After live_last_bytes has returned more than 0, and in
 * one thread at a time. */
void live_add_last(void *memory);

/* Takes all memory away: nothing that was entered is found any more. Call it only when there is one thread,
 * and that thread is in none of these functions except live_maybe(): `first` must stay readable, and read as
 * zeroes. */
void live_close(void);

/* Enters a block; returns flags. An older entry with the same address (the hook did not see its free) is
 * removed and returned in *stale. */
enum live_put_flags {
	LIVE_PUT_FULL = 1,  /* no room, or an address of no block: not entered */
	LIVE_PUT_STALE = 2, /* *stale was filled */
};
uint32_t live_put(const void *pointer, const struct live_entry *entry, struct live_entry *stale);

/* Removes a block and returns its entry; false if it is not there. */
bool live_take(const void *pointer, struct live_entry *entry);

/* Forgets every block. */
void live_clear(void);

/* Calls `visit` for every entry, which it may change. If `visit` returns false, the entry is removed. Used
 * when a forked child claims its place. The entry is busy during the call: a signal handler that frees this
 * very block does not find it, and the entry stays until the address is used again (REGION_LOSS_STALE). */
void live_visit(bool (*visit)(const void *pointer, struct live_entry *entry));

#endif

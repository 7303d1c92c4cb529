/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this pointer a sampled block? Private memory of the process, so that a forked child has an exact copy of
 * what was live when it was forked, whatever its parent does next.
 *
 * Four steps, because nearly every free is of a block that was never sampled:
 *
 *   spans    one counting byte for 8 KiB of addresses. Zero means "nothing sampled there": one load, one
 *            test. 64 bytes of it stand for 512 KiB of heap, so it stays in the first cache whatever the
 *            program frees.
 *   filter   one counting byte per position of the address, scaled to 32 bytes per live sample, so about 3 %
 *            of the frees that come so far take the next step when a level is full.
 *   confirm  a second filter of the same size, where other blocks are neighbours: lets 3 % of those through.
 *   index    buckets of eight keys (one cache line); an address lives in one of four neighbouring buckets,
 *            near those of the addresses around it, or, if these are full, of two times four elsewhere. So a
 *            lookup reads the same 96 words at most, mostly 8, and removing is a store of zero: no
 *            tombstones, no decay with use.
 *
 * Levels of filter, confirm and index: the first is static and serves 8 K live samples (4 GiB of heap at the
 * default period). When it is full, new entries go to the next, sixteen times larger; nothing ever moves. All
 * levels share the spans, so free() itself tests one byte, always.
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
	LIVE_FILTER0_BITS = 18,
	LIVE_WINDOW = 4096, /* positions in 64 KiB of addresses */
	LIVE_SPAN_SHIFT = 13,
	LIVE_SPANS = 1 << 20, /* 8 GiB of addresses; addresses further apart may share a byte */
};

struct live_entry {
	struct region_sample sample;
	uint16_t place; /* tag of the slot's owner: a child must not clear its parent's slots (place.h) */
	uint16_t flags; /* enum slot_flags */
	uint32_t unmapped_pages; /* SLOT_MMAP: as in struct region_slot */
};

extern uint8_t live_spans[LIVE_SPANS];

/* False: certainly not sampled. At the default period one span in 64 holds a sample, at 64 KiB one in 8. The
 * filter is not tested at once, because it has a cache line for each KiB of heap, and there is one for each
 * level. */
static inline bool live_maybe(const void *pointer)
{
	return __atomic_load_n(&live_spans[(uintptr_t)pointer >> LIVE_SPAN_SHIFT & (LIVE_SPANS - 1)],
	           __ATOMIC_RELAXED) != 0;
}

/* The same, by filter and confirm of each level, after live_maybe returned true: one free of an unsampled
 * block in a thousand passes. */
bool live_maybe_here(const void *pointer);

/* Bytes that live_reserve needs for the levels above the first. */
size_t live_reserve_bytes(void);

/* Gives the levels above the first their memory (zeroed, private). Without it there is one level. */
void live_reserve(void *memory);

struct live_memory {
	void *start;
	size_t bytes; /* 0: none */
};

/* What the levels above the first have of it now. */
struct live_memory live_reserved(void);

/* Tells the sampler where that is. */
void live_tell(struct region_header *header);

/* Takes the memory away from levels that are not in use, for good, or from all: then nothing that was entered
 * there is found any more, and the caller is the only thread and not in one of these functions. Returns what
 * the caller is to unmap. */
struct live_memory live_give_back(bool all);

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

/* Calls `visit` for every entry, which it may change; false from it removes the entry. For the claim of a
 * forked child. The entry is busy during the call: a signal handler that frees this very block does not find
 * it, and the entry stays until the address is allocated again (REGION_LOSS_STALE). */
void live_visit(bool (*visit)(const void *pointer, struct live_entry *entry));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this pointer a sampled block? Private memory of the process, so that a forked child has an exact copy of what was
 * live when it was forked, whatever its parent does next.
 *
 * Three steps, because nearly every free is of a block that was never sampled:
 *
 *   filter   one counting byte per position of the address. Zero means "never sampled": one load, one test. The filter is
 *            scaled to 32 bytes per live sample, so about 3 % of frees take the next step when a level is full.
 *   confirm  a second filter of the same size, where other blocks are neighbours: lets 3 % of those through.
 *   index    buckets of eight keys (one cache line); an address lives in one of four neighbouring buckets, so every
 *            lookup reads the same 32 words and removing is a store of zero: no tombstones, no decay with use.
 *
 * Levels: the first is static and serves 8 K live samples (4 GiB of heap at the default period). When it is full, new
 * entries go to the next, sixteen times larger; nothing ever moves. `live_forward_free`, the pointer that free() jumps
 * through, is the real free while there is one level, and a function that asks the others when there are more; so
 * free() itself tests one byte, always.
 *
 * All operations are lock-free and safe against signal handlers and threads that die in the middle. A key is 0 (empty),
 * 1 (busy) or an address; a thread that dies while it holds a key busy leaks that one entry.
 */
#ifndef PRELOAD_LIVE_H
#define PRELOAD_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LIVE_LEVELS       = 3,
	LIVE_FILTER0_BITS = 18,
	LIVE_WINDOW       = 4096, /* positions that belong to 64 KiB of addresses */
};

struct live_entry {
	uint64_t seq;
	uint64_t size_bytes;
	uint64_t period_bytes;
	uint64_t time_ns;
	uint32_t slot;
	uint32_t tid;
	uint16_t place; /* whose slot it is: another place's is not ours to clear (see place.h, fork) */
	uint16_t flags; /* enum slot_flags */
	uint32_t unmapped_pages; /* of a mapping */
};

extern uint8_t live_filter0[2 * ((1u << LIVE_FILTER0_BITS) + LIVE_WINDOW)]; /* and the one that confirms */
extern void (*live_forward_free)(void *pointer);
void live_forward_set(void (*real_free)(void *pointer));

/* The byte of a filter of 2^bits + LIVE_WINDOW. Blocks are 16-byte aligned. 64 KiB of addresses lie side by side, from a
 * place that their number is multiplied to: neighbours share cache lines and pages, as they do in the heap, and no two of them
 * a byte. Spread one by one, 16 to a sample and without the second filter, 30,000,000 pairs of 16 to 256 B took 1.13 of the
 * time of forwarding with a thousand live samples, 1.51 with 100,000 and 1.85 with a million (bench, growth with live
 * samples); now 1.06, 1.17 and 1.33, where each level above the first costs a jump and a load. */
static inline uint32_t live_position(const void *pointer, unsigned int bits)
{
	uint32_t window = (uint32_t)((uintptr_t)pointer >> 16) * 0x9e3779b1u >> (32 - bits);
	return window + ((uint32_t)(uint16_t)(uintptr_t)pointer >> 4);
}

/* False: certainly not sampled (as far as the first level goes, see live_forward_free). */
static inline bool live_maybe(const void *pointer)
{
	return *(volatile uint8_t *)&live_filter0[live_position(pointer, LIVE_FILTER0_BITS)] != 0;
}

/* The same over all levels. */
bool live_maybe_any(const void *pointer);

/* Bytes that live_reserve wants for the levels above the first. */
size_t live_reserve_bytes(void);

/* Gives the levels above the first their memory (zeroed, private, never released). Without it there is one level. */
void live_reserve(void *memory);

/* Enters a block. An entry that stands under the same address (its free went past the hook) is taken out and handed
 * back in *stale. */
enum live_put_result {
	LIVE_PUT       = 0,
	LIVE_PUT_STALE = 1, /* entered, *stale filled */
	LIVE_PUT_FULL  = -1, /* no room: not entered */
	LIVE_PUT_FULL_STALE = -2,
};
int live_put(const void *pointer, const struct live_entry *entry, struct live_entry *stale);

/* Takes a block out; false if it is not there. */
bool live_take(const void *pointer, struct live_entry *entry);

/* Calls `visit` for every entry, which it may change; false from it removes the entry. For the forked child's claim. The
 * entry is busy meanwhile: a signal handler that frees just this block finds nothing, and the entry stays until the
 * address comes again (REGION_LOSS_STALE). */
void live_visit(bool (*visit)(const void *pointer, struct live_entry *entry));

#endif

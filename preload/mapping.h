/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings that `record --mmap` keeps in its books: ranges of pages, of which any part may be unmapped at
 * any time.
 *
 *   mapping   address and live entry: one slot for as long as a page of it is left
 *   shape     which of its pages are left: the whole, or a list of pieces that is never changed, only
 *             replaced
 *
 * A mapping's word names its shape. Unmapping makes a new shape and swaps the word; a thread that loses the
 * race tries again. So when several threads unmap adjacent, overlapping or equal ranges, each page is removed
 * once, and no thread waits. The thread that swapped the word then corrects the slot; the word counts the
 * threads doing so, and when no page is left, the last one frees the slot.
 *
 * Order. The kernel may give a range to another thread before we have noted that it was unmapped. So every
 * mapping has a moment of birth, drawn after the kernel made it, and a range is taken only out of mappings
 * born before the call that unmapped it. For the same reason this is done after that call has succeeded.
 *
 * A mapping that is cut into more pieces than a list can hold is removed and counted as lost
 * (REGION_LOSS_TABLE_FULL). Finding a range is a linear search over all sampled mappings.
 */
#ifndef PRELOAD_MAPPING_H
#define PRELOAD_MAPPING_H

#include "preload/live.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that mapping_open needs, a multiple of 64. */
size_t mapping_bytes(void);

/* Gives the book its memory: zeroed, private, aligned to 64 bytes. Until then, and after mapping_close, it
 * has no room. */
void mapping_open(void *memory);
bool mapping_is_open(void);
void mapping_close(void);

/* Draws the next moment. */
uint64_t mapping_moment(void);

/* Enters a sampled mapping; bytes a multiple of REGION_PAGE_BYTES. entry: as for block_insert. */
void mapping_insert(const void *start, uint64_t bytes, struct live_entry *entry);

/* Ranges that are remembered although they are no samples. */
enum mapping_kind {
	MAPPING_SAMPLED,
	MAPPING_FILE,     /* so that a later mremap of it is not taken for an anonymous one */
	MAPPING_RESERVED, /* mapped without access: in use are those of its pages that got access */
};

/* False: there is no room for another range, or for another reservation beside the samples. */
bool mapping_insert_other(const void *start, uint64_t bytes, enum mapping_kind kind);

/* Does a page of [start, start + bytes) belong to a range of that kind? */
bool mapping_has(const void *start, uint64_t bytes, enum mapping_kind kind);

/* Removes [start, start + bytes) from every mapping that was born before the moment. */
void mapping_remove(const void *start, uint64_t bytes, uint64_t before);

/* The same, but reservations stay: the pages are still mapped. */
void mapping_remove_samples(const void *start, uint64_t bytes, uint64_t before);

/* Attached again: forgets every mapping. */
void mapping_clear(void);

/* In a forked child that claims its place. */
void mapping_inherit(void);

#endif

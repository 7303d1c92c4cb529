/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees: reads an image's ring of them (proto/region.h) into the books of its processes. The ring is a record
 * of how long blocks lived and no more: what is live is told by the slots, and an entry that is overwritten
 * before it is read is a lifetime less, counted in image->frees_lost.
 */
#ifndef SAMPLER_HEAP_FREE_LOG_H
#define SAMPLER_HEAP_FREE_LOG_H

#include "sampler/heap/process.h"

#include <stddef.h>

/* Two steps, since a free can only be told apart once its sample is in the books: free_log_note before the
 * rings are drained, free_log_drain after. Returns how many there were. */
void free_log_note(struct image *image);
size_t free_log_drain(struct image *image, uint64_t now_ns);

#endif

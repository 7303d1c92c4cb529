/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees: reads an image's ring of them (proto/region.h) into the books of its processes. The ring is a record
 * of how long blocks lived and no more: what is live is told by the slots, and an entry that is overwritten
 * before it is read is a lifetime less, counted in image->frees_lost.
 */
#ifndef SAMPLER_FREES_H
#define SAMPLER_FREES_H

#include "sampler/process.h"

#include <stddef.h>

/* Two steps, since a free can only be told apart once its sample is in the books: frees_note before the rings
 * are drained, frees_drain after. Returns how many there were. */
void frees_note(struct image *image);
size_t frees_drain(struct image *image, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims that come to nothing: a forked child that ends while it claims its place leaves it PLACE_CLAIMED,
 * with the segments that it has taken by then, and no process will ever be there. Such a place is given back.
 *
 * Who claims it says the child itself, before it takes its first segment. What it says may be a lie, and is
 * believed only if nobody who calls himself so has the region mapped: then no other process of the image
 * loses anything. A child that stands still for so long, and cannot be found, sees that the place is no
 * longer its own when its claim ends (preload/place.c).
 *
 * A child that was killed before it could say who it is has no segment either: its place is given back once
 * nobody but the processes that are known has the region mapped.
 */
#ifndef SAMPLER_HEAP_STALE_PLACES_H
#define SAMPLER_HEAP_STALE_PLACES_H

#include "sampler/heap/process.h"

#include <stdint.h>

/* Looks at one claim, twice a second at most. The image is ready. */
void stale_places_tend(struct image *image, uint64_t now_ns);

/* Ends what an earlier sampler had begun to give back when it was killed. */
void stale_places_adopt(struct image *image);

#endif

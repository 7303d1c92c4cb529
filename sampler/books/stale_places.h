/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stale places: a forked child that ends while it claims its place leaves the place PLACE_CLAIMED, with the
 * segments that it has taken by then. No process will ever use that place, so it is given back.
 *
 * The child writes its pid into the place before it takes the first segment. The pid may be a lie. The
 * place is given back only if no process with that pid has the region mapped: then no process of the
 * program run loses anything. A child that stands still for so long, and cannot be found, sees at the end
 * of its claim that the place is not its own any more (preload/place.c).
 *
 * A child that was killed before it wrote its pid has no segment either. Its place is given back once only
 * known processes have the region mapped.
 */
#ifndef SAMPLER_BOOKS_STALE_PLACES_H
#define SAMPLER_BOOKS_STALE_PLACES_H

#include "sampler/books/process.h"

#include <stdint.h>

/* Looks at one claimed place, twice a second at most. The program run is ready. */
void stale_places_tend(struct program_run *run, uint64_t now_ns);

/* Gives back the places that an earlier sampler was giving back when it was killed. */
void stale_places_adopt(struct program_run *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads samples and frees from where the hook and the kernel have left them. Returns the number of both. */
#ifndef SAMPLER_BOOKS_DRAIN_H
#define SAMPLER_BOOKS_DRAIN_H

#include "sampler/books/registry.h"

#include <stddef.h>
#include <stdint.h>

/* Everything from the rings, the stack buffers and the logs of frees. */
size_t drain_all(struct registry *registry);

/* The same for about so long: the rest is read by the next calls, before any program run is read again. To
 * read all of many processes that allocate all the time takes seconds beside a load, and a client that
 * asks is not answered meanwhile. Where there are rings, which all program runs share, everything is
 * read. */
size_t drain_some(struct registry *registry, uint64_t budget_ns);

/* The same for one program run that is ready, or for the program runs of processes that are noted to have
 * ended. Where there are rings everything is read. */
void drain_run(struct registry *registry, struct program_run *run);
void drain_ended(struct registry *registry);

/*
 * Of these: a program run's ring of frees (proto/region.h), read into the books of its processes. The ring
 * only serves to know how long blocks lived: the slots say which blocks are live. An entry that is
 * overwritten before it is read costs one lifetime and is counted in run->frees.lost. A free can be assigned
 * to a site only once its sample is in the books, so there are two steps: drain_note_frees() before the rings
 * are drained, drain_frees() after. Returns the number of frees.
 */
void drain_note_frees(struct program_run *run);
size_t drain_frees(struct program_run *run, uint64_t now_ns);

#endif

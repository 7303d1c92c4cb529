/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a program run's ring of frees (proto/region.h) into the books of its processes. The ring only
 * serves to know how long blocks lived: the slots say which blocks are live. An entry that is overwritten
 * before it is read costs one lifetime and is counted in run->frees.lost.
 */
#ifndef SAMPLER_BOOKS_FREE_LOG_H
#define SAMPLER_BOOKS_FREE_LOG_H

#include "sampler/books/process.h"

#include <stddef.h>

/* A free can be assigned to a site only once its sample is in the books. So there are two steps:
 * free_log_note() before the rings are drained, free_log_drain() after. Returns the number of frees. */
void free_log_note(struct program_run *run);
size_t free_log_drain(struct program_run *run, uint64_t now_ns);

#endif

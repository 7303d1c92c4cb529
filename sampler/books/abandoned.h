/* SPDX-License-Identifier: Apache-2.0 */
/* Abandoned program runs: no process of theirs is left, and no other process has the region mapped. */
#ifndef SAMPLER_BOOKS_ABANDONED_H
#define SAMPLER_BOOKS_ABANDONED_H

#include "pprof/text/throttle.h"
#include "sampler/books/books.h"

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. */
struct abandoned {
	struct throttle work; /* time of the looks, in nanoseconds */
};

/* Looks which program runs in anonymous memory no process has mapped any more; not too often. */
void abandoned_look(struct abandoned *abandoned, const struct books *books, uint64_t now_ns);

/* Whether the program run is abandoned. Of a region in anonymous memory the last look says so. */
bool abandoned_is(const struct program_run *run, uint64_t now_ns);

/* The process that offered the region is the first to be asked. */
void abandoned_begin(struct program_run *run, pid_t mapped_by);

#endif

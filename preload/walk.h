/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the calling thread's own stack by the rows that the sampler has published (proto/walk.h), and counts
 * what is allocated from each stack. Neither parses, waits nor calls anything.
 */
#ifndef PRELOAD_WALK_H
#define PRELOAD_WALK_H

#include "preload/weigh.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The region is mapped: protects the tables that only the sampler writes. Under a filter (strict) too: the
 * loader makes the same system call. */
void walk_open(void);

/* A frame that is about to return to `pc` with these values of stack and frame pointer. */
struct walk_start {
	uintptr_t pc, sp, fp;
};

struct walk_found {
	/* of the stack of those frames that are not this library's; 0: it cannot be walked, and the sample
	 * is to be dumped */
	uint32_t number;
	bool asked;    /* the number is new: the sampler is to be told what it stands for */
	bool switched; /* the stack goes on in a goroutine's stack: no dump has all of it */
};
struct walk_found walk_stack(struct walk_start start);

/* Walks once more: writes the return addresses to `frames`, first one in this library, as that of the frame
 * that was called by the first. Returns their number, at most `room`; 0: it cannot be walked now. */
size_t walk_frames(struct walk_start start, uint64_t *frames, size_t room);

/* The hook could not tell the sampler what a new number stands for: the next sample with it tries again. */
void walk_not_dumped(uint32_t stack);

/* One more sample of that stack. */
void walk_count(uint32_t stack, struct weighed weight);

/* Whether this walked sample is to be dumped too, so that the sampler can compare. */
bool walk_is_compared(void);

/* Around a call of dlclose: from the first on, no row of a file that may be unmapped is used. image:
 * claim_is_image(), at each of them. */
struct walk_unmapping {
	uint64_t key; /* of the region */
	uint32_t tid; /* of who has begun */
	bool counted; /* in the tables: by the image's own process alone */
};
struct walk_unmapping walk_unmapping(bool image);
void walk_unmapped(struct walk_unmapping begun, bool image);

#endif

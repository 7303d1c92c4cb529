/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a stopped thread at a point where a function can be called in it that allocates and loads a library?
 *
 * Not if it may hold a lock that these take: when one of its frames is in the loader, in the allocator's
 * code, or in one of the libc's functions that fork, make or end threads, end the process, or go on to the
 * loader. Nor if that cannot be known (its stack cannot be unwound to its end), or if it runs on a stack that
 * may be small: an alternate one of a signal handler, or one that the program made. Nor in a restartable
 * sequence (rseq): the kernel would take the call for the end of it, and what follows would not be restarted.
 *
 * Where the program contains the allocator, any of its code might be that: there a thread must wait for
 * something that allocators do not wait for.
 */
#ifndef SAMPLER_ATTACH_SAFE_POINT_H
#define SAMPLER_ATTACH_SAFE_POINT_H

#include "sampler/attach/address_space.h"
#include "sampler/attach/exports.h"
#include "sampler/attach/stopped_thread.h"
#include "sampler/unwind/maps.h"

struct safe_point {
	const struct address_space *space;
	struct maps *maps;
	struct exports libc;
	uint64_t loader_low, loader_high;       /* [low, high) */
	uint64_t allocator_low, allocator_high; /* its whole object, or glibc's malloc.o */
	bool allocator_is_program;              /* that object is the program itself */
};

/* Returns 0 or -errno; safe_point_close in both cases. The maps are read here and opened at the first
 * check. */
int safe_point_open(struct safe_point *point, const struct address_space *space, struct modules *modules);
void safe_point_close(struct safe_point *point);

enum safe_point_verdict {
	SAFE_POINT_SAFE,
	SAFE_POINT_LOADER,
	SAFE_POINT_ALLOCATOR,
	SAFE_POINT_LIBC,
	SAFE_POINT_SEQUENCE,
	SAFE_POINT_STACK,   /* not its own, or too little room */
	SAFE_POINT_UNKNOWN, /* it could not be unwound */
	SAFE_POINT_VERDICTS,
};

/* `stack`: what is at the stack pointer. Takes long for code that it has not met before. */
enum safe_point_verdict safe_point_check(struct safe_point *point, const struct stopped_thread *thread,
    const unsigned char *stack, size_t stack_bytes);

/* "in the loader", ... */
const char *safe_point_text(enum safe_point_verdict verdict);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a stopped thread at a point where it can be made to call a function that allocates and loads a library?
 *
 * It is not if it may hold a lock that the function takes: if one of its frames is in the loader, in the
 * allocator, or in a function of libc that forks, makes or ends threads, ends the process, or calls the
 * loader. It is not if its stack cannot be unwound to the end, or leads through a file that is gone: then the
 * callers are guesses, and may leave out the allocator. It is not if its stack may be small: a signal
 * handler's alternate stack, or a stack that the program made. It is not in a restartable sequence (rseq):
 * the kernel would take the call for the end of the sequence, and would not restart the rest.
 *
 * If the program itself contains the allocator, any of its code may be the allocator. Then a thread is safe
 * only while it waits for something that allocators do not wait for.
 */
#ifndef SAMPLER_INJECT_SAFE_POINT_H
#define SAMPLER_INJECT_SAFE_POINT_H

#include "sampler/inject/address_space.h"
#include "sampler/inject/exports.h"
#include "sampler/inject/stopped_thread.h"
#include "sampler/unwind/maps.h"

struct safe_point {
	const struct address_space *space;
	struct maps *maps;
	struct exports libc;
	uint64_t loader_low, loader_high;       /* [low, high) */
	uint64_t allocator_low, allocator_high; /* its whole object, or glibc's malloc.o */
	bool allocator_is_program;              /* that object is the program itself */
	char gone[64];                          /* the name of the file of the last SAFE_POINT_GONE */
};

/* Returns 0 or -errno. Call safe_point_close in both cases. The maps are read here, and their files are
 * opened at the first check. */
int safe_point_open(struct safe_point *point, const struct address_space *space, struct modules *modules);
void safe_point_close(struct safe_point *point);

enum safe_point_verdict {
	SAFE_POINT_SAFE,
	SAFE_POINT_LOADER,
	SAFE_POINT_ALLOCATOR,
	SAFE_POINT_LIBC,
	SAFE_POINT_SEQUENCE,
	SAFE_POINT_STACK,   /* not the thread's own, or too little room */
	SAFE_POINT_GONE,    /* the stack leads through a file that is gone and cannot be read */
	SAFE_POINT_UNKNOWN, /* the stack could not be unwound */
	SAFE_POINT_VERDICTS,
};

/* `stack`: a copy of the stack from the stack pointer on. Takes long for code that was not met before. */
enum safe_point_verdict safe_point_check(struct safe_point *point, const struct stopped_thread *thread,
    const unsigned char *stack, size_t stack_bytes);

/* "in the loader", ... */
const char *safe_point_text(enum safe_point_verdict verdict);

#endif

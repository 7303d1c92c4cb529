/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this process may take samples, and how a forked child gets its own place.
 *
 * The program run that was executed has place 0. A forked child finds out that it is one at its first sampled
 * event, or when it maps much memory (mmap.c), claims a free place with an atomic, and gives every block that
 * was live at the fork a slot of its own there, marked inherited. No system call is made. A vfork child
 * shares its parent's memory, so it uses its parent's place, which is right.
 *
 * One word holds the state of the process. It lies in a page that the kernel wipes at fork, so that in a
 * child it reads CLAIM_FORKED, which is 0; or, if a seccomp filter forbids the request for such a page, it
 * lies in plain memory, and is set by the libc's fork hook, or by the first event of a thread whose id has
 * changed.
 *
 * A process that has offered its region (attach.c) looks at the region's mode whenever an interval ends. When
 * a daemon has set it, the process takes a place: place 0 if it is the first, which need not be the one that
 * made the offer. Children that were forked before do the same, so there is nothing to inherit.
 *
 *   early -> attaching -> open -> (fork) forked -> claiming -> open
 *       \-> attaching -> offered -> taking -> open          \-> closed
 *                    \-> closed                            \-> closed
 *                         open -> detached -> open    (attached to a running process)
 */
#ifndef PRELOAD_CLAIM_H
#define PRELOAD_CLAIM_H

#include "preload/place.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum claim_state {
	CLAIM_FORKED = 0,
	CLAIM_CLAIMING = 1,  /* a thread is claiming a place; the others take no samples */
	CLAIM_OPEN = 2,      /* samples are taken */
	CLAIM_CLOSED = 3,    /* no region, or no place in it: from now on the hooks only forward */
	CLAIM_EARLY = 4,     /* no region has been looked for yet */
	CLAIM_ATTACHING = 5, /* a region is being looked for */
	CLAIM_DETACHED = 6,  /* as closed, until the process is attached to again */
	CLAIM_OFFERED = 7,   /* there is a region, and no sampler yet: intervals are counted all the same */
	CLAIM_TAKING = 8,    /* there is one: a thread takes a place; the others take no samples */
};

struct claim_setup {
	struct place_setup place;
	uint32_t pid; /* of the run's process; 0 unknown */
	/* in a page that is zero in a forked child; or NULL: claim_forked() is called instead */
	_Atomic uint32_t *wiped;
};

/* The word that is in force, and the one in plain memory. */
extern _Atomic uint32_t *_Atomic claim_word __attribute__((visibility("hidden")));
extern _Atomic uint32_t claim_unwiped __attribute__((visibility("hidden")));

/* 1: a forked child, which claims its place at its first large mapping, unless it had a sampled event before:
 * what it maps, for pools of its own, may be all that it allocates. Most children that execute another
 * program map nothing before. Of the width of an address, for who tests it (mmap.c). */
extern uintptr_t claim_at_mapping __attribute__((visibility("hidden")));

/* True for one caller only, which must look for a region and then call claim_open or claim_close. */
bool claim_begin(void);

/* The region is mapped, clock and thread id are known: the calling process gets place 0. */
void claim_open(const struct claim_setup *setup);
void claim_close(void);

/* Likewise, for a region that was offered: the process gets a place when a sampler has set the mode. */
void claim_offer(const struct claim_setup *setup);

/* Detached: no more samples, until claim_open is called again. */
void claim_detach(void);

/* Called by the libc before a fork and in the forked child, but not for _Fork and a raw clone. */
void claim_forking(void);
void claim_forked(void);

/* Without a wiped page: the libc calls the functions of others that were registered earlier before it calls
 * claim_forked, and they may free blocks. But it has noted the child's thread id by then, as _Fork does too.
 * A raw clone does not: such a child writes into its parent's place (SECURITY.md). */
void claim_look_for_fork(void);

/* A running process is being attached to or detached from: this is mapped, and not all hooks are there. A
 * child that another thread forks meanwhile may change its user id by a call that has no hook, so it gives up
 * its view of stacks at once. Zero bytes: it is over. */
void claim_turning(void *start, size_t bytes);

/* The process has changed its user id: a forked child gives up its view of the stacks of others, or, if that
 * fails, takes no more samples. Keeps errno. */
void claim_user_changed(void);

/* claim_ready for a process whose state is not CLAIM_OPEN: claims a place if it is a forked child. */
bool claim_place(void);

static inline enum claim_state claim_state(void)
{
	_Atomic uint32_t *word = atomic_load_explicit(&claim_word, memory_order_acquire);

	return (enum claim_state)atomic_load_explicit(word, memory_order_acquire);
}

/* Whether this is the one process that uses rows of files that may be unmapped (walk.h). The tables are
 * shared with its forked children: one that never came back from dlclose (killed, or its destructors called
 * _exit) would leave these rows void for good. A vfork child is this process: what it unmaps is unmapped
 * here. */
static inline bool claim_is_image(void)
{
	return claim_state() == CLAIM_OPEN && place_index() == 0;
}

/* True when samples can be taken. In a forked child it claims the place, and gives entries their new slots.
 */
static inline bool claim_ready(void)
{
	if (atomic_load_explicit(&claim_word, memory_order_acquire) == &claim_unwiped)
		claim_look_for_fork();
	return claim_state() == CLAIM_OPEN || claim_place();
}

/* True from when a region is mapped, though no samples may be taken yet, until there will be none. */
static inline bool claim_has_region(void)
{
	const enum claim_state now = claim_state();

	return now <= CLAIM_OPEN || now >= CLAIM_OFFERED;
}

#endif

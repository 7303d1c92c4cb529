/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of stacks in the walk backend (proto/walk.h).
 *
 * A hook that walks a stack of which nobody has heard gives it the next number itself, counts under it from
 * the first sample on, and dumps that one sample too, with the number. The dump says which stack it is. What
 * is counted meanwhile needs no dump of its own, so that a flood of samples is no flood of dumps.
 *
 *             hook: dumps a sample            sampler: has unwound it
 *   WANTED  -----------------------> ASKED ---------------------------> KNOWN
 *     ^                                |
 *     +--------------------------------+
 *      hook: there was no buffer for it
 *      sampler: it has not come for long
 *
 * UNUSED, by the sampler: the hook dumps each of its samples without a number, because the dump was not
 * whole, or the number is an earlier sampler's.
 *
 * A number belongs to one hash for ever: who finds it by a table entry checks that. So a thread that was held
 * up between two of the stores here, or died there, costs a number at most, and an entry that is changed by
 * somebody else leads to another dump. No order of these calls, by any number of threads and processes, makes
 * two stacks share a number. What the target writes here by accident or on purpose changes its own profile:
 * everything that is read is checked for its range.
 */
#ifndef PROTO_WALK_NUMBER_H
#define PROTO_WALK_NUMBER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WALK_STACKS = 1 << 15,        /* numbers, from 1; a stack above is always dumped */
	WALK_STACK_ENTRIES = 1 << 16, /* a power of two */
	WALK_STACK_PROBES = 8,        /* neighbouring entries in which a number may be */
};

enum walk_number_state {
	WALK_NUMBER_WANTED = 0,
	WALK_NUMBER_ASKED = 1,
	WALK_NUMBER_KNOWN = 2,
	WALK_NUMBER_UNUSED = 3,
};

struct walk_number {
	_Atomic uint64_t hash;  /* of the stack's return addresses; stored before any entry has the number */
	_Atomic uint32_t state; /* enum walk_number_state */
	uint32_t reserved;
};

/* Written by the program run and the sampler. All zeroes: no numbers. */
struct walk_numbers {
	_Atomic uint32_t given;                     /* numbers given out so far */
	_Atomic uint32_t entry[WALK_STACK_ENTRIES]; /* by hash: a number; 0: empty */
	_Alignas(64) struct walk_number of[WALK_STACKS];
};

_Static_assert(sizeof(struct walk_number) == 16, "four in a cache line");

/* How many numbers there are, whatever the target has written. */
static inline uint32_t walk_numbers_given(const struct walk_numbers *numbers)
{
	uint32_t given = atomic_load_explicit(&numbers->given, memory_order_acquire);

	return given < WALK_STACKS ? given : WALK_STACKS - 1;
}

/* A number that no entry has yet; 0: there are no more. */
static inline uint32_t walk_number_draw(struct walk_numbers *numbers, uint64_t hash)
{
	if (atomic_load_explicit(&numbers->given, memory_order_relaxed) >= WALK_STACKS - 1)
		return 0;
	uint32_t number = atomic_fetch_add_explicit(&numbers->given, 1, memory_order_relaxed) + 1;
	if (number == 0 || number >= WALK_STACKS)
		return 0;
	atomic_store_explicit(&numbers->of[number].hash, hash, memory_order_relaxed);
	atomic_store_explicit(&numbers->of[number].state, WALK_NUMBER_WANTED, memory_order_relaxed);
	return number;
}

/* The number of the stack with that hash (not 0), a new one if it has none; 0: there is no room for it. Looks
 * at WALK_STACK_PROBES entries, and never waits: if another thread is quicker with the same stack, its number
 * is the stack's, and the one drawn here is nobody's. */
static inline uint32_t walk_number_take(struct walk_numbers *numbers, uint64_t hash)
{
	size_t at = (size_t)hash & (WALK_STACK_ENTRIES - 1);
	uint32_t mine = 0;

	for (size_t i = 0; i < WALK_STACK_PROBES; i++, at = (at + 1) & (WALK_STACK_ENTRIES - 1)) {
		uint32_t there = atomic_load_explicit(&numbers->entry[at], memory_order_acquire);

		if (!there) {
			mine = mine ? mine : walk_number_draw(numbers, hash);
			if (!mine)
				return 0;
			if (atomic_compare_exchange_strong_explicit(&numbers->entry[at], &there, mine,
			        memory_order_acq_rel, memory_order_acquire))
				return mine;
		}
		if (there < WALK_STACKS &&
		    atomic_load_explicit(&numbers->of[there].hash, memory_order_relaxed) == hash)
			return there;
	}
	return 0;
}

/* For a sample of that number (in range). False: the number is not to be used. *asked: this sample is the one
 * to dump. */
static inline bool walk_number_use(struct walk_numbers *numbers, uint32_t number, bool *asked)
{
	_Atomic uint32_t *word = &numbers->of[number].state;
	uint32_t state = atomic_load_explicit(word, memory_order_relaxed);

	*asked = state == WALK_NUMBER_WANTED &&
	    atomic_compare_exchange_strong_explicit(
	        word, &state, WALK_NUMBER_ASKED, memory_order_relaxed, memory_order_relaxed);
	return state <= WALK_NUMBER_KNOWN;
}

/* The dump that was asked for was not made, or has not come: the next sample is dumped. */
static inline void walk_number_ask_again(struct walk_numbers *numbers, uint32_t number)
{
	uint32_t asked = WALK_NUMBER_ASKED;

	atomic_compare_exchange_strong_explicit(&numbers->of[number].state, &asked, WALK_NUMBER_WANTED,
	    memory_order_relaxed, memory_order_relaxed);
}

#endif

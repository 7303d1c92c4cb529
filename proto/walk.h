/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk backend: the hook names a stack by itself, with unwind rows that the sampler has learned.
 *
 *   rows     hash table: return address -> where the caller's frame, frame pointer and return address are.
 *            The sampler writes a row when it has unwound a dump that led through that address.
 *   numbers  hash table: hash of all return addresses of a stack -> its number. The hook adds.
 *   counts   for each place, by stack number: what was allocated from there. The hook adds.
 *
 * A walk reads the thread's own stack between its stack pointer and its known end, by rows alone. If a row
 * is not known, the sample is dumped as by the other backends, and that teaches the sampler; and the first
 * sample of each stack is dumped, so that its number has a meaning. So a wrong row can make a wrong stack,
 * but no fault; and any other sample costs no record: its number goes into the slot, its weight into the
 * counts, and neither can be lost.
 *
 * Code that is unmapped. Rows of files that the loader had mapped when the program started are in one table:
 * that code stays where it is. Those of other files are in a second one, which is valid for one generation.
 * The hook for dlclose begins a new generation before anything is unmapped; the sampler then empties that
 * table, and fills it again under the new generation. Forked children use the first table alone: what they
 * map later differs from what their parent maps. A stack with a row of the second table has the generation
 * in its hash.
 */
#ifndef PROTO_WALK_H
#define PROTO_WALK_H

#include "proto/loader_log.h"
#include "proto/walk_number.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WALK_ROWS = 1 << 15,       /* entries of each of these tables are a power of two */
	WALK_LATER_ROWS = 1 << 13, /* of files mapped after the start */
	WALK_PLACES = 32,          /* processes of a run with counts, 1 MiB each; others never walk */
	WALK_PROBES = 8,           /* neighbouring entries in which a row may be */
	WALK_FRAMES_MAX = 1024,
};

/* The caller's frame of a return address: CFA = stack or frame pointer + 8 * cfa_words; its return address is
 * at CFA + 8 * ra_words, its frame pointer at CFA + 8 * fp_words: on aarch64 below everything else that the
 * frame has. */
struct walk_rule {
	uint32_t from_fp : 1; /* 1: the CFA is counted from the frame pointer */
	int32_t cfa_words : 31;
	int16_t fp_words; /* 0: it has not changed */
	int16_t ra_words; /* 0: there is no caller */
};

/*
 * The rule of the return address at which Go's runtime.asmcgocall continues when a C function has returned.
 * Two words of its frame, the first of them depth_word words above the stack pointer, are: how far the
 * goroutine's stack pointer is below the end of the goroutine's stack; and the goroutine, whose second word
 * is that end. At the goroutine's stack pointer is a frame record, with which a chain of frame pointers
 * begins; in older versions of Go the return address alone, and the frame pointer leads to the chain. All
 * code that Go compiles keeps the chain up.
 *
 * No other rule has these values: a return address is in the frame that is left.
 */
enum walk_go { WALK_GO_RECORD = 1, WALK_GO_RETURN_ADDRESS = 2 };

static inline struct walk_rule walk_go_rule(uint32_t depth_word, enum walk_go begins_with)
{
	return (struct walk_rule){
	    .cfa_words = -(int32_t)(depth_word % 256), .ra_words = (int16_t)begins_with};
}

static inline bool walk_is_go_rule(struct walk_rule rule)
{
	return rule.ra_words > 0 && rule.cfa_words <= 0 && !rule.from_fp && !rule.fp_words;
}

struct walk_row {
	_Atomic uint64_t pc;   /* the return address; 0: empty. Stored last */
	_Atomic uint64_t rule; /* struct walk_rule */
};

/* As struct region_tally, alone in its part of a cache line. */
struct walk_count {
	_Atomic uint64_t samples, bytes_q8, objects_q16;
	uint64_t reserved;
};

/* One place's counts. A bit of `changed` is set with each addition; the sampler clears it before it reads. */
struct walk_counts {
	_Atomic uint64_t changed[WALK_STACKS / 64];
	struct walk_count count[WALK_STACKS];
};

/* One table of everything. What begins a page is written by others than what is before it. */
struct walk_area {
	/* written by the sampler */
	_Alignas(4096) _Atomic uint64_t later_generation; /* for which `later` is valid */
	/* written by the program run */
	_Alignas(4096) _Atomic uint64_t generation; /* counts calls of dlclose, of place 0, that have begun */
	_Atomic uint64_t unmapping;                 /* such calls that have not returned */

	_Alignas(4096) struct walk_row rows[WALK_ROWS];
	struct walk_row later[WALK_LATER_ROWS];
	/* written by the program run, and by the sampler */
	_Alignas(4096) struct walk_numbers numbers;
	struct walk_counts counts[WALK_PLACES];
	/* written by the program run, also where nothing is walked */
	_Alignas(4096) struct loader_log loader_log;
};

_Static_assert(sizeof(struct walk_rule) == sizeof(uint64_t), "loaded and stored as one word");
_Static_assert(sizeof(struct walk_row) == 16, "four in a cache line");
_Static_assert(sizeof(struct walk_count) == 32, "two in a cache line");

/* Where the search for a key begins. 2^64 / golden ratio spreads neighbours. */
static inline size_t walk_place_of(uint64_t key, size_t entries)
{
	return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (entries - 1);
}

/* The hash of a stack: begins with WALK_HASH_BEGIN, one step for each return address from the innermost on,
 * and an end, which is never 0. generation: 0 unless a row of a later file was used. */
#define WALK_HASH_BEGIN UINT64_C(0x2545f4914f6cdd1d)

static inline uint64_t walk_hash_step(uint64_t hash, uint64_t pc)
{
	return ((hash << 7 | hash >> 57) ^ pc) * UINT64_C(0x9fb21c651e98df25);
}

static inline uint64_t walk_hash_end(uint64_t hash, uint64_t generation)
{
	hash = walk_hash_step(hash, generation);
	hash ^= hash >> 32;
	hash *= UINT64_C(0xd6e8feb86659fd93);
	hash ^= hash >> 32;
	return hash ? hash : 1;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of one process: what its samples say was allocated, by site, and which site each slot's block
 * came from.
 *
 *   sample arrives  -> its site += weight              (alloc_*: every sample, once)
 *                   -> memory of its slot = (seq, site)
 *   free arrives    -> lifetimes += weight
 *                   -> with HEAP_LABEL_LIFETIME, if its block was temporary: its site's temporary += weight
 *
 * A site is the key of one row: stack, heap block or mapping, the process that took the samples, and, if
 * asked for by --labels, thread, size class and backend. The books do not say what is in use: the shared
 * table does (live_scan.h), and the slots' memory gives each block's site. heap_view.h joins both.
 */
#ifndef SAMPLER_BOOKS_HEAP_H
#define SAMPLER_BOOKS_HEAP_H

#include "proto/weight.h"
#include "sampler/books/lifetime.h"
#include "sampler/intake/region.h"

#include <stdbool.h>
#include <stdint.h>

struct heap;

/* What distinguishes rows, besides the stack; bits. */
enum heap_labels {
	HEAP_LABEL_THREAD = 1 << 0,
	HEAP_LABEL_AGE = 1 << 1,
	HEAP_LABEL_SIZE = 1 << 2,
	HEAP_LABEL_BACKEND = 1 << 3,
	HEAP_LABEL_LIFETIME = 1 << 4,
};

enum { HEAP_NO_SITE = UINT32_MAX };

/* Which process took a sample: the books' own process, or its nth ancestor (process.h, from 1). */
enum { HEAP_ORIGIN_SELF = 0 };
#define HEAP_ORIGIN_UNKNOWN UINT32_MAX

/* What tells one row from another. A label that was not asked for is 0. All fields are 32-bit words,
 * because the struct is hashed and compared as bytes. */
struct heap_key {
	uint32_t stack;
	uint32_t mapped; /* 1: mappings, not blocks of the heap */
	uint32_t tid;
	uint32_t size_class; /* blocks of (2^(n-1), 2^n] bytes have n + 1 */
	uint32_t backend;    /* by which the stacks arrived: enum backend */
	uint32_t origin;     /* HEAP_ORIGIN_SELF, unless its blocks were inherited at a fork */
};

struct heap_site {
	struct heap_key key;
	struct tally sums; /* so far */
};

struct heap_sample {
	uint32_t slot; /* REGION_NO_SLOT: none */
	uint64_t seq;
	uint32_t stack, tid;
	bool mapped;
	uint64_t size_bytes, period_bytes;
	uint64_t time_ns; /* when it was taken; 0: unknown */
	uint32_t backend; /* enum backend */
	uint32_t origin;  /* as in struct heap_key */
};

struct heap_options {
	unsigned int labels;   /* enum heap_labels */
	uint64_t temporary_ns; /* a block that its own thread frees before this age is temporary */
	bool deltas;           /* each site keeps its sums at the last mark */
};

/* Borrows the region: it keeps the blocks of the peak, which must stay in the books too. NULL if memory is
 * short. */
struct heap *heap_new(const struct region *region, const struct heap_options *options);
void heap_free(struct heap *heap);
const struct heap_options *heap_options(const struct heap *heap);

/* Enters a sample. Between heap_begin() and heap_adopt() the sample's time says whether it was taken
 * before these books began. Returns 0, -EEXIST if this (slot, seq) is known already (two events saw it),
 * or -ENOMEM. */
int heap_add(struct heap *heap, const struct heap_sample *sample);
/* Enters a sample that was taken before these books began, whatever its time. It is in no delta. */
int heap_add_older(struct heap *heap, const struct heap_sample *sample);

/* Enters the counts of a stack that the target walked itself. `number` is the stack's name in the target
 * (proto/walk.h), which slots and frees use too. Returns 0 or -ENOMEM. */
int heap_add_walked(struct heap *heap, uint32_t number, uint32_t stack, struct tally more);

/* The largest period of the samples and inherited blocks that were entered; 0: none. Errors that are
 * computed with it are not too small, whatever the period is now. Walked stacks are counted without a
 * period: their caller notes the period that was in force. */
uint64_t heap_period_bytes(const struct heap *heap);
void heap_note_period(struct heap *heap, uint64_t period_bytes);

/* While the books are full, new sites and slots are refused (-ENOMEM), and the books take no more memory. */
void heap_set_full(struct heap *heap, bool full);

/* Memory that the books take. */
uint64_t heap_bytes(const struct heap *heap);

/* Segments of the region with a slot that the books remember. */
uint32_t heap_segments(const struct heap *heap);

/* Enters a block that was inherited at a fork: its site gets no allocation. Returns what heap_add() does. */
int heap_inherit(struct heap *heap, const struct heap_sample *sample);

/* Begins books in the middle of a process, which had counted so much (`counted`) just before now_ns. The
 * first delta begins here. */
void heap_begin(struct heap *heap, struct tally counted, uint64_t now_ns);
/* Enters what was counted before these books began and is not in them. All of it goes under one stack, and
 * into no delta. Returns the number of samples, which is never too large: a sample without a time is taken
 * for one that was counted before. */
uint64_t heap_adopt(struct heap *heap, uint32_t stack);

/* Enters the free of a block. False if the block's sample is not in the books: its stack was lost, or has
 * not arrived yet. */
bool heap_freed(struct heap *heap, const struct free_copy *gone);
/* The lifetimes of all blocks whose frees arrived. */
const struct lifetime *heap_lifetimes(const struct heap *heap);
/* The temporary blocks of one site; none without HEAP_LABEL_LIFETIME. */
struct tally heap_site_temporary(const struct heap *heap, uint32_t site);

/* The site of a slot's `seq`th block; HEAP_NO_SITE if it is unknown. walked: the number of the block's
 * stack; 0 if the stack was dumped. */
uint32_t heap_site_of(const struct heap *heap, uint32_t slot, uint64_t seq, uint32_t walked);
uint32_t heap_site_of_slot(const struct heap *heap, uint32_t slot, const struct slot_copy *block);

uint32_t heap_site_count(const struct heap *heap);
const struct heap_site *heap_site(const struct heap *heap, uint32_t site);
struct tally heap_total(const struct heap *heap);

/* The sums, raised so that every sample stands for at least one object: a process that was killed while it
 * counted its last sample may have added only part of it. */
struct tally heap_whole(struct tally sums);

/* What the process has counted minus what arrived here: the samples whose stacks were lost. The result is
 * never negative, although a sample may arrive between the two readings, and a hostile process may write
 * any count. */
struct tally heap_lost(const struct heap *heap, struct tally counted);

/* Begins a delta, if heap_options.deltas was given: keeps the present sums. */
struct heap_mark {
	uint64_t time_ns; /* 0: none yet */
	/* The most lost samples that were seen. Samples that arrive after `counted` was read hide some of
	 * them for a while; these are not lost a second time when they show again. */
	struct tally lost;
};
void heap_mark(struct heap *heap, struct tally counted, uint64_t now_ns);
const struct heap_mark *heap_last_mark(const struct heap *heap);
struct tally heap_site_marked(const struct heap *heap, uint32_t site); /* its sums at the last mark */

#endif

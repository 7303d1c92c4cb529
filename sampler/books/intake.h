/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intake: from a perf record or a copied buffer to an entry in a process' books. Everything that arrives is
 * checked against what the sampler itself knows: the key must belong to a region, the place must be in use,
 * the numbers must be in range.
 */
#ifndef SAMPLER_BOOKS_INTAKE_H
#define SAMPLER_BOOKS_INTAKE_H

#include "sampler/books/books.h"
#include "sampler/perf/record.h"

struct intake {
	struct modules *modules;
	struct books books;
	struct table births; /* forked children of attached processes, see unprofiled.h */
	const struct regs_arch *arch;
	uint64_t regs_mask;
	bool maps_follow;   /* MMAP2 records arrive; otherwise maps are read again from time to time */
	uint64_t ring_lost; /* records that the kernel had no room for, of all processes */
	uint64_t bad;       /* malformed records */
	/* records with a key that no program run has: from a uprobe, of another session or of a program that
	 * calls the trigger itself */
	uint64_t strangers;
	uint64_t taken; /* samples of our processes */
	/* Called for a key that no known program run has. Returns true if program runs have become ready
	 * meanwhile. May be NULL. */
	bool (*find_runs)(void *context);
	void *context;
	struct unwind_frame *frames;
};

/* Borrows modules and memory. Returns 0 or -ENOMEM. Every program run must be removed from the books before
 * intake_fini. */
int intake_init(struct intake *intake, struct modules *modules, struct memory_bound *memory,
    uint64_t regs_mask, bool maps_follow);
void intake_fini(struct intake *intake);

/* For rings_drain. */
void intake_record(void *context, const struct record *record);

/* Prefetches the beginning of the record that follows a sample: another CPU has just written it. */
static inline void intake_prefetch(const struct record *sample)
{
	enum { LINE_BYTES = 64, BEGINNING_BYTES = 512 }; /* header, registers, the innermost frames */
	uintptr_t next = (uintptr_t)sample->stack + sample->stack_want + sizeof(uint64_t);

	for (uintptr_t i = 0; i < BEGINNING_BYTES; i += LINE_BYTES)
		__builtin_prefetch((const void *)(next + i));
}

/* Reads the samples in a program run's stack buffers that were taken before before_ns (by the clock of the
 * records). This keeps copied stacks and MMAP records in time order, so that no stack is unwound with
 * later mappings. Returns the number of samples. */
size_t intake_buffers(struct intake *intake, struct program_run *run, uint64_t before_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resident memory of one process, read together with its heap in use: at each snapshot, and from time
 * to time between them, because nothing of it can be read once the process has ended.
 *
 * A reading costs the target too (see resident_read), so it is done seldom: in a young process whenever it
 * is an eighth older, later once a second, and never more than one two-hundredth of the time, of all
 * processes together. Where the page tables are so large that one reading would take 100 ms, the kernel's
 * counters are read instead: they tell anonymous memory, files and shared memory apart, and nothing else.
 */
#ifndef SAMPLER_SNAPSHOT_RESIDENT_WATCH_H
#define SAMPLER_SNAPSHOT_RESIDENT_WATCH_H

#include "sampler/heap/process.h"
#include "sampler/target/resident.h"

#include <stdbool.h>
#include <stdint.h>

struct resident_reading {
	uint64_t time_ns; /* 0: there is none */
	int64_t unix_ns;
	struct resident parts;
	/* Estimates of what is in use, with their variance: of the heap, and of mappings (--mmap). Bytes as
	 * they were asked for, touched or not. */
	double heap_bytes, heap_variance, mapped_bytes, mapped_variance;
	bool with_mmap;
	bool older; /* blocks from before heaptap attached are in the allocator's mappings too */
};

struct resident_watch {
	struct resident_reading newest, largest;
	uint64_t tried_ns, cost_ns; /* the last one that was tried, also in vain: when, and its CPU time */
};

/* Reads a live process now, and what it is called by now (target.h). Keeps what it had if that fails: the
 * process may just have ended. */
void resident_watch_read(struct resident_watch *watch, struct process *process);

/* The same if it is time to. processes: how many share the time that all readings may take. */
void resident_watch_look(
    struct resident_watch *watch, struct process *process, uint64_t now_ns, size_t processes);

/* Was the process ever seen with so much anonymous memory that no sample explains that it is worth a profile,
 * however few its samples are? That is from 16 MiB on, if malloc at this sampling period would hardly have
 * been without a sample. period_bytes: the session's. */
bool resident_watch_is_large(
    const struct resident_watch *watch, const struct process *process, uint64_t period_bytes);

/* The one that stands for the process: the newest, or the largest if that was much larger. */
const struct resident_reading *resident_watch_shown(const struct resident_watch *watch);

/* How long to wait after a reading of a process of that age. Pure. */
uint64_t resident_watch_wait_ns(uint64_t age_ns, uint64_t cost_ns, size_t processes);

#endif

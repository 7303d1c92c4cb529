/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resident memory of one process, read together with its heap in use. It is read at each snapshot, and
 * from time to time between snapshots, because it cannot be read once the process has ended.
 *
 * A reading costs the target too (see resident_read), so readings are rare. A young process is read whenever
 * it is an eighth older, an old one every second. The readings of all processes together take at most one
 * two-hundredth of the time. If the page tables are so large that one reading would take 100 ms, the kernel's
 * counters are read instead: they tell anonymous memory, files and shared memory apart, and nothing else.
 */
#ifndef SAMPLER_WRITE_RESIDENT_WATCH_H
#define SAMPLER_WRITE_RESIDENT_WATCH_H

#include "sampler/books/process.h"
#include "sampler/intake/resident.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct resident_reading {
	uint64_t time_ns; /* 0: there is none */
	int64_t unix_ns;
	struct resident parts;
	/* Estimates of what is in use, with their variance: of the heap, and of mappings (--mmap). All bytes
	 * that the program asked for, touched or not. */
	double heap_bytes, heap_variance, mapped_bytes, mapped_variance;
	bool with_mmap;
	bool older; /* the allocator's mappings also have blocks from before heaptap attached */
};

struct resident_watch {
	struct resident_reading newest, largest;
	uint64_t tried_ns, cost_ns; /* the last attempt, also if it failed: when, and its CPU time */
};

/* Reads a live process now, and its present name (target.h). If that fails, the last reading stays: the
 * process may just have ended. */
void resident_watch_read(struct resident_watch *watch, struct process *process);

/* The same, if a reading is due. processes: how many processes share the time that readings may take. */
void resident_watch_look(
    struct resident_watch *watch, struct process *process, uint64_t now_ns, size_t processes);

/* Had the process ever so much anonymous memory without a sample that it is worth a profile, however few its
 * samples are? That is 16 MiB, or more at a large sampling period, at which so much malloc would be without a
 * sample by chance. period_bytes: the session's. */
bool resident_watch_is_large(
    const struct resident_watch *watch, const struct process *process, uint64_t period_bytes);

/* The reading that is shown: the newest, or the largest if it was much larger. */
const struct resident_reading *resident_watch_shown(const struct resident_watch *watch);

/* The time until the next reading of a process of that age. Pure. */
uint64_t resident_watch_wait_ns(uint64_t age_ns, uint64_t cost_ns, size_t processes);

/* ---- a reading in words: for the end summary, for `heaptap doctor`, and as a comment of a profile */

enum { RESIDENT_TEXT_ROWS = RESIDENT_KINDS + 1, RESIDENT_TEXT_BYTES = 160 };

/* Makes a line for each part that is not zero, in the order of the kinds: " 3.1 MiB heap in use, +- 200.0
 * KiB". sampled: the reading has estimates of what is in use. Returns the number of lines. */
size_t resident_text_rows(
    const struct resident_reading *reading, bool sampled, char rows[RESIDENT_TEXT_ROWS][RESIDENT_TEXT_BYTES]);

/* Prints the largest reading when a process has ended, without parts below a hundredth of the sum. Prints
 * nothing if there was no reading. end_ns: when the end was seen. */
void resident_text_print(FILE *out, const struct resident_watch *watch, uint64_t end_ns);

/* "rss: total=34017280 heap=2097152 heap_error=65536 slack=1048576 anonymous=... (bytes; smaps, TIME)".
 * heap, slack, anonymous, code, files, shared, stacks, heaptap and kernel add up to total; slack may be
 * below 0. */
void resident_text_comment(const struct resident_reading *reading, char *text, size_t text_bytes);

#endif

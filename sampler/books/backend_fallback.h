/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fallback: which backend captures a program run's stacks, and the step to the next one when it stops
 * working.
 *
 *   uprobe -> breakpoint -> copy
 *
 * A backend may fail before the first sample (no debug register is free, the process is another user's) or
 * later: somebody disables the event, or the library's file is replaced, so that programs executed from
 * then on map another file than the one with the uprobe. No kernel interface reports that, but the numbers
 * do. The target counts every sample it takes: if the count rises while no stack of the process arrives,
 * its backend does not work. Each program run falls back alone; but when several find the uprobe silent,
 * it is not offered to later ones: hostile ones can cause that. Those get another backend, which costs
 * more and counts the same.
 */
#ifndef SAMPLER_BOOKS_BACKEND_FALLBACK_H
#define SAMPLER_BOOKS_BACKEND_FALLBACK_H

#include "sampler/books/books.h"
#include "sampler/perf/probe.h"

#include <stdbool.h>

enum backend_fallback_cause {
	BACKEND_FALLBACK_REFUSED,  /* the kernel gave no breakpoint */
	BACKEND_FALLBACK_SILENT,   /* samples were taken and no stack came */
	BACKEND_FALLBACK_SWITCHES, /* the breakpoint cost too much at context switches */
	BACKEND_FALLBACK_EXECUTED, /* the breakpoint was that of a process that executed another program */
	BACKEND_FALLBACK_CAUSES,
};

struct backend_fallback {
	/* borrowed */
	const struct probe *probe;
	int verbosity;
	/* backend auto: a breakpoint may be replaced by the copy backend if it costs too much */
	bool may_yield;

	uint64_t to_breakpoint, to_copy; /* steps so far */
	uint64_t causes[BACKEND_FALLBACK_CAUSES];
	uint32_t runs_without_uprobe_hits;
	uint64_t looked_ns, ring_lost;
};

/* The mode for regions of future program runs; it changes when the uprobe is abandoned. */
enum region_mode backend_fallback_mode(const struct backend_fallback *fallback);

/* The program run is ready: until it has its first backend, its stacks come by the session's. */
void backend_fallback_expect(const struct backend_fallback *fallback, struct program_run *run);

/* Gives a program run that an earlier sampler had its backend: the uprobe, or the copy. */
void backend_fallback_adopt(const struct backend_fallback *fallback, struct program_run *run);

/* Gives a new program run its first backend; the copy if the program run was not chosen: no event is
 * opened for it, and none missed. `process` is its place 0. */
void backend_fallback_begin(
    struct backend_fallback *fallback, struct program_run *run, const struct process *process);

/* A process of the program run has executed another program. Kernels before 5.13 do not remove its breakpoint
 * then: the breakpoint holds a debug register to the end of the process, and four programs in a row hold
 * them all. So it is closed here, before the next program gets its own. The children that inherited it
 * lose it too; their stacks are copied from now on. */
void backend_fallback_executed(struct backend_fallback *fallback, struct program_run *run);

/* To be called after the rings and buffers were drained. Checks each program run now and then. ring_lost: how
 * many records were lost so far because the rings were full. Returns true if backend_fallback_mode() has
 * changed. */
bool backend_fallback_tend(
    struct backend_fallback *fallback, const struct books *books, uint64_t ring_lost, uint64_t now_ns);

/* Describes which backends were changed since the start; "" if none. */
void backend_fallback_describe(const struct backend_fallback *fallback, char *text, size_t bytes);

#endif

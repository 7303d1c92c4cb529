/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder: by which rung an image's stacks come, and the step down when that rung does not bear any more.
 *
 *   uprobe -> breakpoint -> copy
 *
 * A rung fails before the first sample (no debug register is free, the process is another user's), or later:
 * somebody disables the event, the library's file is replaced, so that programs executed from then on map
 * another file than the uprobe is on. No kernel interface tells of the latter; the numbers do. The target
 * counts every sample it takes, so a process whose count goes on while no stack of it arrives has lost its
 * rung. Each image steps down by itself: what a hostile one makes us believe costs nobody else anything.
 */
#ifndef SAMPLER_LADDER_H
#define SAMPLER_LADDER_H

#include "sampler/probe.h"
#include "sampler/process.h"

#include <stdbool.h>

enum ladder_cause {
	LADDER_REFUSED,  /* the kernel gave no breakpoint */
	LADDER_SILENT,   /* samples were taken and no stack came */
	LADDER_SWITCHES, /* the breakpoint cost too much at context switches */
	LADDER_CAUSES,
};

struct ladder {
	/* borrowed */
	const struct probe *probe;
	int verbosity;
	/* the backend was our choice: a breakpoint may give way to the copy rung for its price */
	bool may_yield;

	uint64_t to_breakpoint, to_copy; /* steps so far */
	uint64_t causes[LADDER_CAUSES];
	uint32_t deaf_images; /* that no uprobe hit came from */
	uint64_t looked_ns, ring_lost;
};

/* Mode for the regions of images to come; it changes when the uprobe is given up. */
enum region_mode ladder_mode(const struct ladder *ladder);

/* Puts a new image on its first rung. `process` is its place 0. */
void ladder_begin(struct ladder *ladder, struct image *image, const struct process *process);

/* To be called after the rings and buffers were drained. ring_lost: records that the kernel had no room for
 * so far. Looks at each image now and then. True if ladder_mode has changed. */
bool ladder_tend(struct ladder *ladder, struct image *images, uint64_t ring_lost, uint64_t now_ns);

/* What has changed since the start, in words; an empty text if nothing. */
void ladder_describe(const struct ladder *ladder, char *text, size_t bytes);

#endif

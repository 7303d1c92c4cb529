/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot: the books of one process, with names, as a profile in a file.
 *
 * snapshot_write runs in a forked child of the sampler: the fork is the consistent copy, draining goes on meanwhile, and
 * a debug file that kills libdw takes only the child with it.
 */
#ifndef SAMPLER_SNAPSHOT_H
#define SAMPLER_SNAPSHOT_H

#include "sampler/heap.h"
#include "sampler/process.h"

#include <limits.h>

struct snapshot {
	struct process *process;
	struct heap_view view;
	char path[PATH_MAX];
	char cause[160];      /* "exit: status 0" */
	char session[512];    /* backend, period and losses of the whole session: a comment of its own */
	char host[65];
	uint64_t period_bytes;
	int detail;           /* enum symbol_level's numbers: 0 full, 1 functions, 2 raw */
};

/* Builds, encodes and publishes the profile. Returns 0 or -errno. */
int snapshot_write(const struct snapshot *snapshot);

#endif

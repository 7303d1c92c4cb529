/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of lifetimes: a JSON line that names the classes, then one line per stack.
 *
 *     {"classes":["0-1us",...,"1h-"],"temporary_ns":1000000,"frees_missing":0}
 *     {"stack":["leaf","caller",...],"freed":[objects per class],"live":[objects per
 *     class],"freed_samples":12,
 *      "freed_bytes":...,"temporary":...,"other_thread":...}
 *
 * All but freed_bytes and freed_samples are estimates of objects. "live" counts blocks by their age so far:
 * their lifetimes are at least that (right-censored). A stack with neither freed nor live blocks is left out.
 */
#ifndef SAMPLER_SNAPSHOT_LIFETIMES_FILE_H
#define SAMPLER_SNAPSHOT_LIFETIMES_FILE_H

#include "pprof/profile/profile.h"
#include "sampler/heap/heap.h"
#include "sampler/region/live_scan.h"
#include "sampler/snapshot/symbolizer.h"

/* The books go on while a snapshot waits for the writer: what it says of them is copied when it is taken,
 * else blocks would be both live and freed. */
struct lifetimes_taken {
	struct lifetime all; /* of all freed blocks */
	uint64_t frees_missing;
	uint32_t site_count;
	struct lifetimes_site {
		struct lifetime freed;
		double live_objects[LIFETIME_CLASSES]; /* by their ages so far */
	} * sites;                                     /* NULL: only what is above is known */
};

/* The sites, of a heap with heap_options.lifetimes. 0 or -ENOMEM. */
int lifetimes_file_take(
    struct lifetimes_taken *taken, const struct heap *heap, const struct live_scan *live_scan);
void lifetimes_file_release(struct lifetimes_taken *taken);

struct lifetimes_input {
	const struct lifetimes_taken *taken; /* with its sites */
	const struct heap *heap;             /* of which they were taken: gives their keys */
	/* of the same snapshot: gives the names */
	const struct profile *profile;
	struct symbolizer *symbolizer;
};

/* The file's text, which the caller frees; NULL: out of memory. */
char *lifetimes_file_print(const struct lifetimes_input *input, size_t *bytes);

#endif

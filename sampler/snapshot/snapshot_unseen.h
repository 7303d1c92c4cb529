/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a process that a snapshot of its heap does not show, and why. */
#ifndef SAMPLER_SNAPSHOT_SNAPSHOT_UNSEEN_H
#define SAMPLER_SNAPSHOT_SNAPSHOT_UNSEEN_H

#include "sampler/heap/heap_view.h"
#include "sampler/heap/process.h"
#include "sampler/heap/unseen.h"
#include "sampler/snapshot/resident_watch.h"
#include "sampler/snapshot/symbolizer.h"

struct snapshot_unseen {
	struct unseen_facts facts;
	struct unseen texts; /* made of the facts */
};

/* Sets all fields. */
void snapshot_unseen_look(struct snapshot_unseen *unseen, const struct process *process,
    const struct resident_watch *resident, const struct heap_view *view);

/* Adds the comments. Called in the writer's child, where the names of the view's functions are known. */
void snapshot_unseen_comment(struct profile *profile, const struct snapshot_unseen *unseen,
    const struct heap_view *view, const struct symbolizer *symbolizer);

#endif

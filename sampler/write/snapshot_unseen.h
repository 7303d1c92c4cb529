/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a process that a snapshot of its heap does not show, and why. */
#ifndef SAMPLER_WRITE_SNAPSHOT_UNSEEN_H
#define SAMPLER_WRITE_SNAPSHOT_UNSEEN_H

#include "sampler/books/heap_view.h"
#include "sampler/books/process.h"
#include "sampler/books/unseen.h"
#include "sampler/write/resident_watch.h"
#include "sampler/write/symbolizer.h"

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

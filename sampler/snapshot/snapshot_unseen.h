/* SPDX-License-Identifier: Apache-2.0 */
/* What of a process is not seen in a snapshot of its heap. */
#ifndef SAMPLER_SNAPSHOT_SNAPSHOT_UNSEEN_H
#define SAMPLER_SNAPSHOT_SNAPSHOT_UNSEEN_H

#include "sampler/heap/heap_view.h"
#include "sampler/heap/process.h"
#include "sampler/heap/unseen.h"
#include "sampler/snapshot/resident_watch.h"
#include "sampler/snapshot/symbolizer.h"

struct snapshot_unseen {
	struct unseen_facts facts;
	struct unseen texts; /* that follow from them */
};

/* Fills it in. */
void snapshot_unseen_look(struct snapshot_unseen *unseen, const struct process *process,
    const struct resident_watch *resident, const struct heap_view *view);

/* In the child that writes: the comments, with what is known since the names of the view were looked up. */
void snapshot_unseen_comment(struct profile *profile, const struct snapshot_unseen *unseen,
    const struct heap_view *view, const struct symbolizer *symbolizer);

#endif

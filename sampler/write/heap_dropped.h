/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that ended without a last profile: how many they are by the reason for it, and what they
 * counted. */
#ifndef SAMPLER_WRITE_HEAP_DROPPED_H
#define SAMPLER_WRITE_HEAP_DROPPED_H

#include "sampler/books/process.h"
#include "sampler/write/snapshot.h"

struct heap_dropped {
	struct tally allocated;
	uint64_t processes;
	double at_end_bytes;      /* of SNAPSHOT_DROP_FEW: in use at their ends */
	uint64_t unsaid, said_ns; /* of the others: processes since the last line in the log */
};

/* What a process of few samples has in use, without blocks that were inherited, which the parent counts.
 * Nothing if out of memory. */
struct tally heap_dropped_in_use(const struct process *process);

/* Counts a process. at_end: of SNAPSHOT_DROP_FEW, what it had in use. */
void heap_dropped_add(struct heap_dropped dropped[SNAPSHOT_DROPS], const struct process *process,
    enum snapshot_drop why, struct tally at_end);

/* Says how many processes have no last profile for that reason, and what they counted. False if there are
 * none: the text is "". */
bool heap_dropped_describe(
    const struct heap_dropped dropped[SNAPSHOT_DROPS], enum snapshot_drop why, char *text, size_t text_bytes);

#endif

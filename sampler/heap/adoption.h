/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes over books that an earlier sampler kept. First what was counted so far is noted. Then, once the samples
 * that were on their way have arrived and the stacks that wait in the region were read, each block that lives
 * gets the stack that the earlier sampler has logged, and the rest the marker frame for its stack.
 */
#ifndef SAMPLER_HEAP_ADOPTION_H
#define SAMPLER_HEAP_ADOPTION_H

#include "sampler/heap/process.h"

void adoption_begin(struct process *process);
void adoption_end(struct process *process);

/* After all processes of the image were taken over, since a log may be read for more than one: begins the log of
 * the stacks anew. */
void adoption_log(struct process *process);

#endif

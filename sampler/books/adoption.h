/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes over books that an earlier sampler kept. First what was counted so far is noted. Then, once the
 * samples that were on their way have arrived and the stacks that wait in the region were read, each block
 * that lives gets the stack that the earlier sampler has logged, and the rest the marker frame for its stack.
 */
#ifndef SAMPLER_BOOKS_ADOPTION_H
#define SAMPLER_BOOKS_ADOPTION_H

#include "sampler/books/intake.h"

void adoption_begin(struct process *process);

/* Enters the blocks that live, with the stacks that the earlier sampler has logged. */
void adoption_enter(struct process *process);

/* For all processes of the program run. Reads first what the earlier sampler had not read, which has its
 * stacks; then what it has logged; only then begins the log of the stacks anew. The program run is settled
 * afterwards. */
void adoption_end(struct intake *intake, struct program_run *run);

#endif

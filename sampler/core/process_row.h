/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process itself counts, as the lists of control sockets say it: sums, growth, and what is missing by
 * cause. The process may be hostile: good for a display, and for nothing else.
 */
#ifndef SAMPLER_CORE_PROCESS_ROW_H
#define SAMPLER_CORE_PROCESS_ROW_H

#include "sampler/books/process.h"
#include "sampler/core/control_list.h"

enum { PROCESS_ROW_LOSSES = REGION_LOSS_COUNT + 2 };

/* Fills in what is in use, was allocated and grows, how many samples there are, and how many are missing.
 * losses: the room for row->losses. Call it after a drain: samples that have not been read yet would be
 * called lost. */
void process_row_fill(struct control_process *row, struct control_loss losses[PROCESS_ROW_LOSSES],
    const struct process *process);

/* The resident memory of a process. 0 if it cannot be read. */
uint64_t process_row_resident_bytes(pid_t pid);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process itself counts, and how that grows, as lists of processes say it. The process may be hostile:
 * good for a display, and for nothing else.
 */
#ifndef SAMPLER_SESSION_PROCESS_SUMS_H
#define SAMPLER_SESSION_PROCESS_SUMS_H

#include "sampler/control/control_list.h"
#include "sampler/heap/process.h"

/* Fills in what is in use, was allocated, and grows, and how many samples there are. */
void process_sums_fill(struct control_process *row, const struct process *process);

#endif

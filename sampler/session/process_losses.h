/* SPDX-License-Identifier: Apache-2.0 */
/* What is missing of a process' samples, by cause, as lists of processes say it. */
#ifndef SAMPLER_SESSION_PROCESS_LOSSES_H
#define SAMPLER_SESSION_PROCESS_LOSSES_H

#include "sampler/control/control_list.h"
#include "sampler/heap/process.h"

enum { PROCESS_LOSSES = REGION_LOSS_COUNT + 2 };

/* To be called after a drain: what has not been read yet would be called lost. Returns how many. */
size_t process_losses(const struct process *process, struct control_loss losses[PROCESS_LOSSES]);

#endif

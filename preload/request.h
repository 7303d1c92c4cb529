/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program, or whoever sends it a signal, asks of the sampler: words in this process' place of the
 * shared region, which the sampler looks at with every tick. Nothing here makes a system call.
 */
#ifndef PRELOAD_REQUEST_H
#define PRELOAD_REQUEST_H

#include "proto/region.h"

#include <stdbool.h>

/* Pausing: no samples are taken, every free is still seen. A block is sampled or not by what holds when it is
 * allocated, and the interval that a pause cuts short has no memory, so nothing is biased. */
void request_pause(bool pause);
bool request_paused(void);

/* A snapshot, please. Safe in a signal handler. */
void request_signalled(void);

/* A snapshot under a name (may be NULL). The sampler sets the word that is returned to *number once it has
 * read the books. NULL: there is nobody to ask, or another thread is asking. */
_Atomic uint32_t *request_ask(const char *name, uint32_t *number);

/* For place.c: at the start of the image, and of every process' place: a forked child is as its parent. */
void request_open(bool paused);
void request_begin(struct region_place *place);

#endif

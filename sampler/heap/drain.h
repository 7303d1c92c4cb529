/* SPDX-License-Identifier: Apache-2.0 */
/* Reads samples and frees from where the hook and the kernel have left them. Returns the number of both. */
#ifndef SAMPLER_HEAP_DRAIN_H
#define SAMPLER_HEAP_DRAIN_H

#include "sampler/heap/registry.h"

#include <stddef.h>
#include <stdint.h>

/* Everything from the rings, the stack buffers and the logs of frees. */
size_t drain_all(struct registry *registry);

/* The same for about so long: the rest is read by the next calls, before any image is read again. To read
 * all of many processes that allocate all the time takes seconds beside a load, and a client that asks is
 * not answered meanwhile. Where there are rings, which all images share, everything is read. */
size_t drain_some(struct registry *registry, uint64_t budget_ns);

/* The same for one image that is ready, or for the images of processes that are noted to have ended. Where
 * there are rings everything is read. */
void drain_image(struct registry *registry, struct image *image);
void drain_ended(struct registry *registry);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Images, and the processes that appear in them. */
#ifndef SAMPLER_HEAP_IMAGE_H
#define SAMPLER_HEAP_IMAGE_H

#include "sampler/heap/process.h"

/* Takes ownership of the region, also on failure. NULL if memory is short. */
struct image *image_new(struct region *region, uint64_t now_ns);
void image_free(struct image *image); /* closes the region; every process must be gone */

/* The process at a place; it is created if it is in the shared memory and not known yet. NULL if there is
 * none. */
struct process *image_process(struct image *image, uint32_t place, struct modules *modules);

/* Forgets a finished process. Its place in the region is released by region_release_place(), not here. */
void image_free_process(struct process *process);

/* The sampling period of the image: the first one (0: the session's), and a later one. */
void image_begin_period(struct image *image, uint64_t period_bytes);
void image_set_period(struct image *image, uint64_t period_bytes);

/* Looks again for a process that is unsure. True if it has a pidfd now. */
bool image_look_again(struct process *process);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Images, and the processes that appear in them. */
#ifndef SAMPLER_HEAP_IMAGE_H
#define SAMPLER_HEAP_IMAGE_H

#include "sampler/heap/process.h"

/* Takes ownership of the region (also on failure). NULL: out of memory. */
struct image *image_new(struct region *region, uint64_t now_ns);
void image_free(struct image *image); /* closes the region; every process must be gone */

/* The process at a place; created if it is in the shared memory and not known yet; NULL if there is none. */
struct process *image_process(struct image *image, uint32_t place, struct modules *modules);

/* Looks again for one that is unsure. True: now it has a pidfd. */
bool image_look_again(struct process *process);

#endif

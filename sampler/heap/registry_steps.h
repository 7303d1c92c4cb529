/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the registry's files call of each other: nobody else does.
 */
#ifndef SAMPLER_HEAP_REGISTRY_STEPS_H
#define SAMPLER_HEAP_REGISTRY_STEPS_H

#include "sampler/target/target.h"

#include <stdbool.h>
#include <stddef.h>

struct image;
struct process;
struct region;
struct registry;

/* Takes the region over. NULL: out of memory. */
struct image *registry_add_image(struct registry *registry, struct region *region);

/* Notices claimed regions, and begins with those whose images are ready. Returns how many have come. */
size_t registry_settle_claims(struct registry *registry);

/* The process is known from now on: its end is waited for, and the listener told. */
void registry_watch(struct registry *registry, struct process *process);

/* A process that had ended at our first look has no pidfd; one for which no descriptor was left then is
 * looked at again. */
bool registry_has_ended(struct registry *registry, struct process *process);

/* Looks which images in anonymous memory nobody has mapped any more; not too often. */
void registry_look_who_maps(struct registry *registry, uint64_t now);

/* An image without a living process is removed only when no process maps its region any more; of anonymous
 * memory the last look counts. */
bool registry_is_over(const struct image *image, uint64_t now);

/* Closes the books: all samples taken before the end have been read by now. */
void registry_finish(struct registry *registry, struct process *process, enum target_end end, int status);

#endif

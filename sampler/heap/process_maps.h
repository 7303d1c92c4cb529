/* SPDX-License-Identifier: Apache-2.0 */
/* Where a process gets its maps from: /proc, or, if it has ended already, what others know of it. */
#ifndef SAMPLER_HEAP_PROCESS_MAPS_H
#define SAMPLER_HEAP_PROCESS_MAPS_H

#include "sampler/heap/process.h"

/* Sets target.maps, which the target owns; NULL: out of memory. `parent` may be NULL. */
void process_maps_open(struct process *process, struct modules *modules, const struct process *parent);

#endif

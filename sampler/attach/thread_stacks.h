/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of the threads that run already, for the library (struct region_stack, below_main_stack): a
 * thread cannot find out the bounds of its own without a system call. */
#ifndef SAMPLER_ATTACH_THREAD_STACKS_H
#define SAMPLER_ATTACH_THREAD_STACKS_H

#include "sampler/attach/address_space.h"
#include "sampler/region/region.h"

/* Before the hand-over. Mappings that may be stacks: private, writable, of no file. */
void thread_stacks_write(const struct address_space *space, const struct region *region);

#endif

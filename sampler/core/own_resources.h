/* SPDX-License-Identifier: Apache-2.0 */
/* What this process itself uses, and what the kernel allows it. */
#ifndef SAMPLER_CORE_OWN_RESOURCES_H
#define SAMPLER_CORE_OWN_RESOURCES_H

#include <stdint.h>

/* Removes the limits of file sizes, memory and stack if we may; if not, raises the soft limits to the hard
 * limits. (A region is a file of up to 330 MB, most of it holes.) Raises the soft limit of descriptors to the
 * hard limit. As root it also asks the kernel's OOM killer to prefer other processes. */
void own_resources_raise_limits(void);

/* The CPU time of this process. The children that write profiles take theirs whatever the sampling period is,
 * and the kernel reports all of it at the moment when a child is waited for. */
uint64_t own_resources_cpu_ns(void);

/* The same with the children that were waited for. */
uint64_t own_resources_cpu_with_children_ns(void);

uint64_t own_resources_rss_bytes(void);

/* Without shared memory, which the regions are. */
uint64_t own_resources_private_bytes(void);

#endif

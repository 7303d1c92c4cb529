/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's limits on its own load. Once a second it checks its own memory and CPU time; above a limit
 * the sampling period doubles, which halves the number of samples. Weights stay right, since every sample
 * carries the period that it was drawn with. The period is never lowered again.
 *
 * CPU time is the main loop's: the children that write profiles take theirs whatever the period is, and the
 * kernel reports all of it at the moment when a child is waited for.
 */
#ifndef SAMPLER_CORE_SELF_LIMITS_H
#define SAMPLER_CORE_SELF_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct self_limits {
	uint64_t rss_max_bytes;   /* 0: no limit */
	uint32_t cpu_max_percent; /* of one CPU; 0: no limit */
	uint64_t looked_ns, cpu_ns;
	uint64_t raised; /* times */
};

enum self_limits_verdict {
	SELF_LIMITS_FINE,
	SELF_LIMITS_MEMORY, /* above the limit */
	SELF_LIMITS_CPU,
};

/* Looks if a second has passed since the last look. now_ns: monotonic. */
enum self_limits_verdict self_limits_look(struct self_limits *guard, uint64_t now_ns);

/* Raises the soft limits of descriptors and file sizes to the hard ones (a region is a file of 500 MB, most
 * of it holes), that of file sizes altogether if it may, and asks the kernel's OOM killer to prefer other
 * processes (root only; a preference, not an exemption). */
void self_limits_begin(void);

/* Of this process, and of the children that it has waited for. */
uint64_t self_limits_cpu_ns(void);
uint64_t self_limits_rss_bytes(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's guard over itself: it must not become the load that it measures. Once a second it looks at
 * its own memory and CPU (its writer's children included); above a limit the sampling period doubles, which
 * halves everything that comes in. Weights stay right, since every sample carries the period that it was
 * drawn with. The period never goes down again by itself.
 */
#ifndef SAMPLER_SESSION_SELF_LIMITS_H
#define SAMPLER_SESSION_SELF_LIMITS_H

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
	SELF_LIMITS_MEMORY, /* too much of it */
	SELF_LIMITS_CPU,
};

/* Looks if a second has passed since the last look. now_ns: monotonic. */
enum self_limits_verdict self_limits_look(struct self_limits *guard, uint64_t now_ns);

/* Takes all descriptors and file sizes that the hard limits allow (a region is a file of 230 MB), and asks
 * the kernel to take others first when memory runs out (root only, and no more than that). */
void self_limits_begin(void);

uint64_t self_limits_rss_bytes(void);

#endif

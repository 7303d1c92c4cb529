/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --max-rss and --max-cpu: a session's limits on its own load. Once a second the sampler looks at its memory
 * and CPU time. Above a limit the sampling period doubles, which halves the number of samples. Weights stay
 * right, since every sample carries the period that it was drawn with. The period is never lowered again.
 */
#ifndef SAMPLER_CMD_RECORD_SELF_LIMITS_H
#define SAMPLER_CMD_RECORD_SELF_LIMITS_H

#include <stdint.h>

struct heap_capture;

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
enum self_limits_verdict self_limits_look(struct self_limits *limits, uint64_t now_ns);

/* Looks, and doubles the period of all program runs if a limit is exceeded. */
void self_limits_apply(struct self_limits *limits, struct heap_capture *heap);

#endif

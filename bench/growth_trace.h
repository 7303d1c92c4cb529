/* SPDX-License-Identifier: Apache-2.0 */
/* What a program allocated and freed, as growth_log.c wrote it down. */
#ifndef BENCH_GROWTH_TRACE_H
#define BENCH_GROWTH_TRACE_H

#include "bench/growth_log.h"

#include <stddef.h>
#include <stdint.h>

struct growth_block {
	double born_s, died_s;
	double before_bytes; /* allocated before it */
	uint32_t bytes, stack;
};

/* All of it is from malloc() and lives as long as the program. */
struct growth_trace {
	struct growth_block *blocks;
	size_t block_count;
	double bytes, end_s;
	struct growth_log_stack *stacks;
	uint32_t stack_count, leak_stack, churn_stack;
	uint32_t *heads;     /* of each stack, a place in it */
	uint32_t *frames;    /* [stack * GROWTH_LOG_DEPTH + place] */
	uint64_t *functions; /* of each frame */
	uint32_t frame_count;
};

/* Reads PATH and PATH.stacks, each time multiplied by STRETCH, and says in one line what is in them. A stack
 * is added for a leak in a function of its own. What cannot be read ends the program. */
void growth_trace_read(struct growth_trace *trace, const char *path, double stretch);

/* MEMORY; NULL ends the program. */
void *growth_trace_need(void *memory);

#endif

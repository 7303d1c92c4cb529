/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/growth_log.c writes and bench/growth_replay.c reads. */
#ifndef BENCH_GROWTH_LOG_H
#define BENCH_GROWTH_LOG_H

#include <stdint.h>

enum { GROWTH_LOG_DEPTH = 8 };

struct growth_log_event {
	uint64_t time_ns, address;
	uint32_t bytes; /* 0: freed */
	uint32_t stack; /* number in FILE.stacks */
};

struct growth_log_stack {
	uint32_t depth;
	uint64_t functions[GROWTH_LOG_DEPTH]; /* innermost first */
};

#endif

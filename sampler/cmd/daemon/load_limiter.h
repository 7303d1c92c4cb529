/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's limits on its own load. Above a limit, the sampling periods of all processes double. When the
 * daemon has used much less than the limits for a while, they are halved again.
 *
 * A raise that has not reduced the CPU time is taken back, and is not tried again for some minutes: the
 * samples were not what took the time (processes that start and end take some too). Nor does the limiter
 * raise the periods again before the CPU time has fallen below its value at the last raise. So a process that
 * is busy now and then cannot raise everybody's periods further and further.
 *
 * One look says little, as profiles become due and programs begin in bursts. So the limiter judges the mean
 * CPU time of a minute. Only a first raise does not wait for that, if the CPU time is far above the limit.
 * Weights stay right, since every sample carries the period that it was drawn with. Pure.
 *
 * CPU time is that of the main loop: the children that write profiles take theirs whatever the period is (the
 * service manager's CPUQuota limits them). Memory is private memory: the pages of the regions are shared.
 */
#ifndef SAMPLER_CMD_DAEMON_LOAD_LIMITER_H
#define SAMPLER_CMD_DAEMON_LOAD_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LOAD_LIMITER_WINDOW_S = 10,  /* between looks */
	LOAD_LIMITER_MEAN_LOOKS = 6, /* the mean CPU time of so many looks is judged */
	/* After so many looks with less than 1/3 of the memory and 7/10 of the mean CPU time the periods are
	 * halved. */
	LOAD_LIMITER_CALM_LOOKS = 30,
	LOAD_LIMITER_REST_LOOKS = 30, /* without a raise, after a raise that did not help */
	LOAD_LIMITER_RAISED_MAX = 10, /* times 1,024 */
};

struct load_limiter {
	uint32_t raised; /* the periods are the configured ones times 2 to this power */
	bool by_memory;  /* the last raise was because of memory, not because of CPU time */
	bool doubted;  /* the last change has undone a raise, as there is as much to do as before the raise */
	uint32_t calm; /* calm looks in succession */
	uint32_t rest; /* looks that are left during which CPU time raises no period */
	uint64_t raised_at[LOAD_LIMITER_RAISED_MAX]; /* the CPU time that led to each raise; 0: memory did */
	bool judge; /* it is not known yet whether the last raise has helped */
	uint64_t cpu_shares[LOAD_LIMITER_MEAN_LOOKS]; /* of the last looks */
	uint32_t looks;                               /* since the periods were last changed */
	uint64_t looked_ns, cpu_ns;
};

struct load_limiter_limits {
	uint32_t cpu_percent; /* of one CPU; 0: no limit */
	uint64_t memory_bytes;
};

/* What the daemon uses: own_resources_cpu_ns() and _private_bytes(). */
struct load_limiter_reading {
	uint64_t cpu_ns, memory_bytes;
};

/* Call it at least every LOAD_LIMITER_WINDOW_S. True if load->raised has changed. */
bool load_limiter_look(struct load_limiter *load, const struct load_limiter_limits *limits,
    const struct load_limiter_reading *reading, uint64_t now_ns);

#endif

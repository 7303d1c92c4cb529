/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's limits on its own load: what it takes beyond them is answered by larger sampling periods,
 * twice as large each time, for all processes; and when it has taken much less for a while, by smaller ones
 * again. If a larger period has not made the CPU time less, it was not the samples that took it (processes
 * that start and end do): it is taken back, and not tried again for some minutes. Nor is there another
 * raise before the CPU time is less than at the last, so that nobody raises everybody's periods further and
 * further by being busy now and then. One look says little, as profiles are due and programs begin in
 * bursts: CPU time is judged by the mean of a minute, but for a first raise when it is far above the limit.
 * Weights stay right, since every sample carries the period that it was drawn with. Pure.
 *
 * CPU time is the main loop's: the children that write profiles take theirs whatever the period is (the
 * service manager's CPUQuota bounds them). Memory is what is our own: the pages of the regions are shared.
 */
#ifndef SAMPLER_DAEMON_LOAD_LIMITER_H
#define SAMPLER_DAEMON_LOAD_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LOAD_LIMITER_WINDOW_S = 10,  /* between looks */
	LOAD_LIMITER_MEAN_LOOKS = 6, /* of which the mean counts */
	/* With less than 1/3 of the memory and, in the mean, 7/10 of the CPU time: then the period is
	 * halved. */
	LOAD_LIMITER_CALM_LOOKS = 30,
	LOAD_LIMITER_REST_LOOKS = 30, /* after a larger period that was no help */
	LOAD_LIMITER_RAISED_MAX = 10, /* times 1,024 */
};

struct load_limiter {
	uint32_t raised; /* the periods are 2 to this power times what is configured */
	bool by_memory;  /* the last raise was because of memory, and not of CPU time */
	bool doubted;    /* the last change was to undo a raise, as there is as much to do as before it */
	uint32_t calm;   /* looks in succession */
	uint32_t rest;   /* looks for which CPU time raises nothing */
	uint64_t raised_at[LOAD_LIMITER_RAISED_MAX];  /* the CPU time that led to each raise; 0: memory did */
	bool judge;                                   /* whether the last one has helped is not known yet */
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

/* True: `raised` has changed. To be called at least every LOAD_LIMITER_WINDOW_S. */
bool load_limiter_look(struct load_limiter *load, const struct load_limiter_limits *limits,
    const struct load_limiter_reading *reading, uint64_t now_ns);

#endif

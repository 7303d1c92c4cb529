/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's limits on its own load: what it takes beyond them is answered by larger sampling periods,
 * twice as large each time, for all processes; and when it has taken much less for a while, by smaller ones
 * again. If a larger period has not made the CPU time less, it was not the samples that took it (processes
 * that start and end do): it is taken back, and not tried again for some minutes. Nor is there another
 * raise before the CPU time is less than at the last, so that nobody raises everybody's periods further and
 * further by being busy now and then. One look says little, as profiles are due and programs begin in
 * bursts: CPU time is judged by the mean of a minute, but for a first raise when it is far above the limit.
 * Weights stay right, since every sample carries the period that it was drawn with. Pure but for
 * own_load_read.
 *
 * CPU time is the main loop's: the children that write profiles take theirs whatever the period is (the
 * service manager's CPUQuota bounds them). Memory is what is our own: the pages of the regions are shared.
 */
#ifndef SAMPLER_DAEMON_OWN_LOAD_H
#define SAMPLER_DAEMON_OWN_LOAD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	OWN_LOAD_WINDOW_S = 10,  /* between looks */
	OWN_LOAD_MEAN_LOOKS = 6, /* of which the mean counts */
	/* With less than 1/3 of the memory and, in the mean, 7/10 of the CPU time: then the period is
	 * halved. */
	OWN_LOAD_CALM_LOOKS = 30,
	OWN_LOAD_REST_LOOKS = 30, /* after a larger period that was no help */
	OWN_LOAD_RAISED_MAX = 10, /* times 1,024 */
};

struct own_load {
	uint32_t raised; /* the periods are 2 to this power times what is configured */
	bool by_memory;  /* the last raise was because of memory, and not of CPU time */
	bool doubted;    /* the last change was to undo a raise, as there is as much to do as before it */
	uint32_t calm;   /* looks in succession */
	uint32_t rest;   /* looks for which CPU time raises nothing */
	uint64_t raised_at[OWN_LOAD_RAISED_MAX];  /* the CPU time that led to each raise; 0: memory did */
	bool judge;                               /* whether the last one has helped is not known yet */
	uint64_t cpu_shares[OWN_LOAD_MEAN_LOOKS]; /* of the last looks */
	uint32_t looks;                           /* since the periods were last changed */
	uint64_t looked_ns, cpu_ns;
};

struct own_load_limits {
	uint32_t cpu_percent; /* of one CPU; 0: no limit */
	uint64_t memory_bytes;
};

struct own_load_reading {
	uint64_t cpu_ns, memory_bytes;
};

void own_load_read(struct own_load_reading *reading);

/* True: `raised` has changed. To be called at least every OWN_LOAD_WINDOW_S. */
bool own_load_look(struct own_load *load, const struct own_load_limits *limits,
    const struct own_load_reading *reading, uint64_t now_ns);

#endif

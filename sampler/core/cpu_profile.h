/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU profiles for clients of the control socket: a process is sampled for some seconds, by another heaptap
 * (`record --no-heap --pid PID -e cpu-clock`), which is told to stop when the time is over. So the session
 * itself samples nothing but what it was started for, and a fault there ends that profile only.
 *
 * Its file is made in the folder of the control socket, which nobody else may read, and becomes shared
 * memory.
 */
#ifndef SAMPLER_CORE_CPU_PROFILE_H
#define SAMPLER_CORE_CPU_PROFILE_H

#include "sampler/snapshot/scheduler_setup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CPU_PROFILES = 8 /* at a time */, CPU_PROFILE_HZ = 100 };

struct cpu_profiles {
	struct in_memory_giver giver;
	struct cpu_profile {
		pid_t child; /* 0: free */
		pid_t pid;
		int pidfd;       /* of that pid, or -errno: no other process that has it later is meant */
		uint64_t asker;  /* 0: it has gone, nobody gets the profile */
		uint64_t end_ns; /* when the child is told to stop, or killed */
		bool told;
		char path[PATH_MAX]; /* of its file, without what the event's name adds */
	} items[CPU_PROFILES];
	uint64_t number;
};

/* file: a path for the child's file that no other file has. Later the giver gets the profile, or why there is
 * none (-ESRCH: the process has ended before it was sampled). 0; -EBUSY: CPU_PROFILES are being made, those
 * that nobody waits for any more included; or -errno. */
int cpu_profiles_start(
    struct cpu_profiles *profiles, pid_t pid, uint32_t duration_ms, uint64_t asker, const char *file);

/* That asker waits no more: its child is stopped. */
void cpu_profiles_cancel(struct cpu_profiles *profiles, uint64_t asker);

/* Stops those whose time is over. Returns after how many ns to look again at the latest. */
uint64_t cpu_profiles_tend(struct cpu_profiles *profiles, uint64_t now_ns);

/* A child of the sampler has ended. True: it was one of these. */
bool cpu_profiles_reap(struct cpu_profiles *profiles, pid_t child, int status);

/* Kills them all. */
void cpu_profiles_fini(struct cpu_profiles *profiles);

#endif

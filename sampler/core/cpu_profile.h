/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU profiles for clients of the control socket. A child process, `heaptap record --no-heap --pid PID -e
 * cpu-clock`, samples the process for some seconds, and is told to stop when the time is over. So the sampler
 * itself samples only what it was started for, and a fault in the child ends only this profile.
 *
 * The child writes a file in the folder of the control socket, which no other user may read. The client gets
 * the profile as shared memory.
 */
#ifndef SAMPLER_CORE_CPU_PROFILE_H
#define SAMPLER_CORE_CPU_PROFILE_H

#include "sampler/write/scheduler_setup.h"

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
		int pidfd;       /* of that pid, or -errno */
		uint64_t asker;  /* the client; 0: it has gone, nobody gets the profile */
		uint64_t end_ns; /* when the child is told to stop, or killed */
		bool told;
		char path[PATH_MAX]; /* of its file, without the ending that the event's name adds */
	} items[CPU_PROFILES];
	uint64_t number;
};

/* Starts the child. file: a path for its file, which no other file has. Later profiles->giver gets the
 * profile or an error (-ESRCH if the process has ended before it was sampled). Returns 0 or -errno; -EBUSY
 * if CPU_PROFILES children run, also for clients that have gone. */
int cpu_profiles_start(
    struct cpu_profiles *profiles, pid_t pid, uint32_t duration_ms, uint64_t asker, const char *file);

/* The client does not wait any more: stops its child. */
void cpu_profiles_cancel(struct cpu_profiles *profiles, uint64_t asker);

/* Stops the children whose time is over. Returns the time until the next call, in nanoseconds, at most. */
uint64_t cpu_profiles_tend(struct cpu_profiles *profiles, uint64_t now_ns);

/* A child of the sampler has ended. True if it was one of these children. */
bool cpu_profiles_reap(struct cpu_profiles *profiles, pid_t child, int status);

/* Kills all children. */
void cpu_profiles_fini(struct cpu_profiles *profiles);

#endif

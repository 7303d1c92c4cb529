/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says about a thread: see proc(5), status and stat. */
#ifndef SAMPLER_LINUX_THREAD_FACTS_H
#define SAMPLER_LINUX_THREAD_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_facts {
	bool unread; /* no descriptor or memory was left to read: all else is zero and means nothing */
	pid_t pid;   /* its process; 0 for a zombie, and if there is no such thread */
	pid_t parent;
	pid_t inner;  /* its id in its own pid namespace */
	bool like_us; /* all its user ids are ours */
	uid_t user;   /* its real user, which a set-user-ID program keeps; -1: unknown */
};

struct thread_facts thread_facts_read(pid_t tid);

/* Identifies one execution of a program by a process. `ticks`: the time of the fork, in ticks since the
 * machine's start; 0: unknown. `stack_start` and `environment_end`: where the stack began and the environment
 * ended at the last exec; 0 if the process has ended or we may not know. environment_end is also 0 during an
 * exec: the old program is gone, and there is no environment yet. */
struct thread_birth {
	uint64_t ticks, stack_start, environment_end;
};
struct thread_birth thread_facts_birth(pid_t pid);

/* Are both the same execution of the same process? */
bool thread_facts_same_birth(const struct thread_birth *one, const struct thread_birth *other);

/* The time now in such ticks. */
uint64_t thread_facts_now(void);

/* How long ago such a time was, or 0 if unknown. */
uint64_t thread_facts_age_ns(uint64_t birth_ticks);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says about a thread, see proc(5), status and stat. */
#ifndef SAMPLER_LINUX_THREAD_FACTS_H
#define SAMPLER_LINUX_THREAD_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_facts {
	bool unread; /* no descriptor or memory was left to look: all else is zero, and says nothing */
	pid_t pid;   /* of its process; 0 for a zombie and for none */
	pid_t parent;
	pid_t inner;  /* its id in its own pid namespace */
	bool like_us; /* all its user ids are ours */
	uid_t user;   /* its real one, which a program with set-user-ID leaves alone; -1: not known */
};

struct thread_facts thread_facts_read(pid_t tid);

/* When a process was forked, in ticks since the machine's start; 0: not known. And where its stack began and
 * its environment ended when it last executed a program, 0: it has ended, or may not be known. The latter is
 * 0 too while it executes one: nothing of the old program is left then, and there is no environment yet. */
struct thread_birth {
	uint64_t ticks, stack_start, environment_end;
};
struct thread_birth thread_facts_birth(pid_t pid);

/* Whether that is the same execution of the same process. */
bool thread_facts_same_birth(const struct thread_birth *one, const struct thread_birth *other);

/* The time now in such ticks. */
uint64_t thread_facts_now(void);

/* How long ago that was; 0: unknown. */
uint64_t thread_facts_age_ns(uint64_t birth_ticks);

#endif

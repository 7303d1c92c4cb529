/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says about a thread (proc(5), status and stat), and about all threads of a process. */
#ifndef SAMPLER_LINUX_THREAD_FACTS_H
#define SAMPLER_LINUX_THREAD_FACTS_H

#include <stdbool.h>
#include <stddef.h>
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

/*
 * ---- context switches of a process
 *
 * A breakpoint uses the debug registers, which the kernel reloads at every context switch of the process'
 * threads. So a program that switches often pays for them, however few samples are taken.
 */
enum {
	/* threads that are read; the sum is scaled up if there are more */
	THREAD_FACTS_SWITCHES_THREADS = 512,

	/* Above this the breakpoint backend yields: a task with a perf event of its own takes 1.0 to 1.3 us
	 * more each time it leaves and returns to a CPU (pipe ping-pong, 5104 against 6405 ns a round), so
	 * this bound is 1 % of a CPU. */
	THREAD_FACTS_SWITCHES_PER_SECOND_MAX = 10000,
};

/* How often all threads together have been scheduled on a CPU so far. Returns 0 or -errno. */
int thread_facts_switches(pid_t pid, uint64_t *turns);

/*
 * ---- where libc keeps the descriptors of a process' threads
 *
 * The kernel knows one address in each descriptor: the head of the thread's list of robust mutexes, see
 * get_robust_list(2). glibc registers this head when it starts a thread. The head is in the descriptor, and
 * the descriptor is at the upper end of the thread's stack. musl registers the head late or never. The main
 * thread's descriptor is elsewhere, and is left out.
 */
struct thread_descriptors {
	uint64_t *addresses; /* ascending */
	size_t count, capacity;
};

/* Returns 0 or -errno. The caller must call thread_facts_descriptors_fini, also after an error. */
int thread_facts_descriptors_read(struct thread_descriptors *descriptors, pid_t pid);
void thread_facts_descriptors_fini(struct thread_descriptors *descriptors);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libc keeps the descriptors of a process' threads.
 *
 * The kernel knows one address in each descriptor: the head of the thread's list of robust mutexes, see
 * get_robust_list(2). glibc registers this head when it starts a thread. The head is in the descriptor, and
 * the descriptor is at the upper end of the thread's stack. musl registers the head late or never. The main
 * thread's descriptor is elsewhere, and is left out.
 */
#ifndef SAMPLER_LINUX_THREAD_DESCRIPTORS_H
#define SAMPLER_LINUX_THREAD_DESCRIPTORS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_descriptors {
	uint64_t *addresses; /* ascending */
	size_t count, capacity;
};

/* Returns 0 or -errno. The caller must call thread_descriptors_fini, also after an error. */
int thread_descriptors_read(struct thread_descriptors *descriptors, pid_t pid);
void thread_descriptors_fini(struct thread_descriptors *descriptors);

#endif

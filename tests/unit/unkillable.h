/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a process that does not end when it is killed, as one that waits for a file system that does not
 * answer. A thread of it is traced by a child, which does not ask how that has ended; until then, nobody is
 * told that the process has.
 */
#ifndef TESTS_UNIT_UNKILLABLE_H
#define TESTS_UNIT_UNKILLABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void *unkillable_thread(void *argument)
{
	atomic_store((_Atomic pid_t *)argument, (pid_t)syscall(SYS_gettid));
	for (;;)
		pause();
	return NULL;
}

/* From now on, until until_fd is at its end: whoever keeps its other end open, it is not this process. */
static inline bool unkillable_become(int until_fd)
{
	static _Atomic pid_t tid;
	pthread_t thread;
	int told[2];
	char byte = 0;

	if (pipe(told) != 0 || pthread_create(&thread, NULL, unkillable_thread, &tid) != 0)
		return false;
	while (!atomic_load(&tid))
		usleep(1000);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (fork() == 0) {
		if (ptrace(PTRACE_SEIZE, atomic_load(&tid), NULL, NULL) != 0 || write(told[1], &byte, 1) != 1)
			_exit(1);
		while (read(until_fd, &byte, 1) > 0)
			;
		_exit(0);
	}
	close(told[1]);
	return read(told[0], &byte, 1) == 1;
}

#endif

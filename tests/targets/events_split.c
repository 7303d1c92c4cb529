/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events_split HOW SECONDS: spends CPU time in known shares, and says on one line what it spent where, in ns
 * of its own CPU clocks: "spent NAME NS NAME NS...".
 *
 *   functions  work_70 and work_30, by turns of 7 and 3 ms of the process' clock
 *   threads    thread_busy in two threads, 3:1, by each thread's own clock
 *   child      the parent in parent_busy, a forked child in child_busy, 1:1
 *   signal     a timer's handler in on_timer for 2 of every 5 ms, the rest in interrupted
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Inlined: the time is then the caller's. Between looks at the clock, which is a system call, some 30 us. */
static inline __attribute__((always_inline)) uint64_t spend(uint64_t ns)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID), now;
	do {
		for (int i = 0; i < 20000; i++)
			sink += (uint64_t)i * sink;
		now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	} while (now - start < ns);
	return now - start;
}

/* A function of its own each: without the comment in assembly the compiler makes equal ones one. */
#define WORKER(name)                                                \
	__attribute__((noinline)) static uint64_t name(uint64_t ns) \
	{                                                           \
		uint64_t spent_ns = spend(ns);                      \
		__asm__ volatile("# " #name);                       \
		return spent_ns;                                    \
	}
WORKER(work_70)
WORKER(work_30)
WORKER(parent_busy)
WORKER(child_busy)
WORKER(interrupted)
WORKER(thread_long)
WORKER(thread_short)
WORKER(handler_busy)

static uint64_t spent[2];

static void *run_long(void *ns)
{
	pthread_setname_np(pthread_self(), "long");
	spent[0] = thread_long(*(uint64_t *)ns * 3);
	return NULL;
}

static void *run_short(void *ns)
{
	spent[1] = thread_short(*(uint64_t *)ns);
	return NULL;
}

static void on_timer(int number)
{
	int saved = errno;
	spent[0] += handler_busy(2000000);
	errno = saved;
}

static void functions(uint64_t ns)
{
	while (spent[0] + spent[1] < ns) {
		spent[0] += work_70(7000000);
		spent[1] += work_30(3000000);
	}
	printf("spent work_70 %lu work_30 %lu\n", spent[0], spent[1]);
}

static void threads(uint64_t ns)
{
	pthread_t thread[2];
	uint64_t unit = ns / 4;
	pthread_create(&thread[0], NULL, run_long, &unit);
	pthread_create(&thread[1], NULL, run_short, &unit);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	printf("spent thread_long %lu thread_short %lu\n", spent[0], spent[1]);
}

static void child(uint64_t ns)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(child_busy(ns / 2) < ns / 2);
	spent[0] = parent_busy(ns / 2);
	waitpid(pid, &status, 0);
	printf("spent parent_busy %lu child_busy %lu pid %d\n", spent[0], ns / 2, (int)pid);
}

static void handler(uint64_t ns)
{
	const struct itimerval timer = {{0, 5000}, {0, 5000}}, none = {{0, 0}, {0, 0}};
	signal(SIGPROF, on_timer);
	setitimer(ITIMER_PROF, &timer, NULL);
	uint64_t all = interrupted(ns);
	setitimer(ITIMER_PROF, &none, NULL);
	printf("spent on_timer %lu interrupted %lu\n", spent[0], all - spent[0]);
}

int main(int argc, char **argv)
{
	uint64_t ns = argc > 2 ? (uint64_t)(atof(argv[2]) * 1e9) : 0;
	const char *how = ns ? argv[1] : "";
	if (strcmp(how, "functions") == 0)
		functions(ns);
	else if (strcmp(how, "threads") == 0)
		threads(ns);
	else if (strcmp(how, "child") == 0)
		child(ns);
	else if (strcmp(how, "signal") == 0)
		handler(ns);
	else
		return 2;
	return 0;
}

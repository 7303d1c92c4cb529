/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events_split HOW SECONDS: spends CPU time in known shares, and says on one line what it spent where, in ns
 * of its own CPU clocks: "spent NAME NS NAME NS...". With
 * functions a second line says for how much of it the processor stood still: the host had it, or it served
 * interrupts.
 *
 *   functions  work_70 and work_30, by turns of 7 and 3 ms of the thread's clock in the mean
 *   threads    thread_long and thread_short in two threads, 3:1, by each thread's own clock
 *   child      the parent in parent_busy, a forked child in child_busy, 1:1
 *   signal     a timer's handler in on_timer, some 2 ms each time, and some 3 ms in interrupted between them
 *
 * Turns are of random lengths. The kernel samples at equal intervals of a thread's CPU time, so a program
 * whose turns are equal too can be in step with it: 5 intervals at 499 Hz are 10.02 ms, and at turns of 7 + 3
 * ms (and what the last look at the clock takes) work_70 has 3 or 4 of every 5 samples for as long as the
 * step is kept, 60 or 80 % of all. That is so of every profiler with a fixed interval, and nothing that a
 * test should hang on.
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

/* Ten times what lies between two looks at the clock. */
#define STALL_NS 300000

static volatile uint64_t sink;
static uint64_t random_state;
static _Thread_local uint64_t stalled_ns;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* From half of the mean to one and a half. */
static uint64_t about(uint64_t mean)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return mean / 2 + (random_state >> 33) % mean;
}

/* Inlined: the time is then the caller's. Between looks at the clock, which is a system call, some 30 us. */
static inline __attribute__((always_inline)) uint64_t spend(uint64_t ns)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID), now = start, last;

	do {
		last = now;
		for (int i = 0; i < 20000; i++)
			sink += (uint64_t)i * sink;
		now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (now - last > STALL_NS)
			stalled_ns += now - last;
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

static void arm(uint64_t ns)
{
	/* The real one: the timers of CPU time count in ticks of the kernel's, one more thing to be in step
	 * with. */
	const struct itimerval timer = {.it_value.tv_usec = (suseconds_t)(ns / 1000)};

	setitimer(ITIMER_REAL, &timer, NULL);
}

static void on_timer(int number)
{
	int saved = errno;

	spent[0] += handler_busy(about(2000000));
	arm(about(3000000));
	errno = saved;
}

static void functions(uint64_t ns)
{
	while (spent[0] + spent[1] < ns) {
		spent[0] += work_70(about(7000000));
		spent[1] += work_30(about(3000000));
	}
	printf("spent work_70 %lu work_30 %lu\nstalled %lu\n", spent[0], spent[1], stalled_ns);
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
	signal(SIGALRM, on_timer);
	arm(about(3000000));
	uint64_t all = interrupted(ns);
	arm(0);
	printf("spent on_timer %lu interrupted %lu\n", spent[0], all - spent[0]);
}

int main(int argc, char **argv)
{
	uint64_t ns = argc > 2 ? (uint64_t)(atof(argv[2]) * 1e9) : 0;
	const char *how = ns ? argv[1] : "";

	random_state = clock_ns(CLOCK_MONOTONIC);
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

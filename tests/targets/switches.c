/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switches MS [ROUNDS]: two threads on one CPU that wake each other through two pipes until they have had so
 * many milliseconds of CPU time, or so many rounds. Prints the CPU time and the number of switches. It also
 * allocates now and then.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int there[2], back[2];

static void *answer(void *unused)
{
	char byte;

	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		;
	return unused;
}

static double cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
	    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

int main(int argc, char **argv)
{
	double limit_ms = argc > 1 ? atof(argv[1]) : 500;
	long rounds = 0, fixed = argc > 2 ? atol(argv[2]) : 0;
	cpu_set_t one;
	pthread_t thread;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&thread, NULL, answer, NULL) != 0)
		return 1;
	for (char byte = 0; (fixed ? rounds < fixed : rounds % 64 || cpu_ms() < limit_ms); rounds++) {
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			return 1;
		if (rounds % 16 == 0)
			free(malloc(4000));
	}
	close(there[1]);
	pthread_join(thread, NULL);
	printf("%.1f ms, %ld switches\n", cpu_ms(), 2 * rounds);
	return 0;
}

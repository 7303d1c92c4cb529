/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events_churn: threads that create threads, each of which spins for some ms and ends, two or three at a
 * time, until a signal ends the program: what attaching to a running process has to cope with. Says "ready"
 * once it is under way.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static void *churn(void *generation)
{
	struct timespec start, now;
	pthread_t next;
	pthread_attr_t attributes;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (int i = 0; i < 10000; i++)
			sink += (uint64_t)i * sink;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 3000000);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if ((uintptr_t)generation == 50) {
		printf("ready\n");
		fflush(stdout);
	}
	while (pthread_create(&next, &attributes, churn, (void *)((uintptr_t)generation + 1)) != 0)
		usleep(1000);
	return NULL;
}

int main(void)
{
	pthread_t thread[2];

	pthread_create(&thread[0], NULL, churn, (void *)0);
	pthread_create(&thread[1], NULL, churn, (void *)1000);
	for (;;)
		pause();
}

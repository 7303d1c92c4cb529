/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose memory goes up and down as it is told, in MiB, by lines on its standard input:
 *
 *   take N    allocates N blocks of 1 MiB and touches them
 *   drop N    frees the last N
 *   churn N   allocates N blocks and frees each at once
 *   burst N   allocates N blocks, untouched, then frees them all
 *   map N     maps N MiB that are not the heap's, touches and unmaps them
 *   fork      the child goes on, its parent waits for it
 *
 * Each line is answered: "PID LINE", and for take and map the time when it was half done, in seconds since
 * 1970.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, BLOCKS_MAX = 4096 };

static void *volatile blocks[BLOCKS_MAX];
static long count;
static struct timespec half;

__attribute__((noinline)) static void take(long number, int touched)
{
	for (long i = 0; i < number && count < BLOCKS_MAX; i++) {
		blocks[count] = malloc(MIB);
		if (touched && blocks[count])
			memset(blocks[count], 1, MIB);
		count++;
		if (i == number / 2)
			clock_gettime(CLOCK_REALTIME, &half);
	}
}

__attribute__((noinline)) static void drop(long number)
{
	for (; number > 0 && count > 0; number--)
		free(blocks[--count]);
}

static void churn(long number)
{
	for (; number > 0; number--) {
		take(1, 0);
		drop(1);
	}
}

static void map(size_t bytes)
{
	char *memory =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	clock_gettime(CLOCK_REALTIME, &half);
	if (memory != MAP_FAILED)
		munmap(memory, bytes);
}

static void obey(const char *what, long number)
{
	if (strcmp(what, "take") == 0) {
		take(number, 1);
	} else if (strcmp(what, "drop") == 0) {
		drop(number);
	} else if (strcmp(what, "churn") == 0) {
		churn(number);
	} else if (strcmp(what, "burst") == 0) {
		take(number, 0);
		drop(number);
	} else if (strcmp(what, "map") == 0) {
		map((size_t)number * MIB);
	} else if (strcmp(what, "fork") == 0) {
		pid_t child = fork();

		if (child > 0) {
			waitpid(child, NULL, 0);
			exit(0);
		}
	}
}

int main(void)
{
	char line[64], what[16];
	long number;

	setvbuf(stdin, NULL, _IONBF, 0); /* a child reads on where its parent stopped */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%d ready\n", (int)getpid());
	while (fgets(line, sizeof(line), stdin)) {
		number = 0;
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%15s %ld", what, &number) < 1)
			continue;
		half = (struct timespec){0};
		obey(what, number);
		printf(
		    "%d %s %lld.%06ld\n", (int)getpid(), line, (long long)half.tv_sec, half.tv_nsec / 1000);
	}
	return 0;
}

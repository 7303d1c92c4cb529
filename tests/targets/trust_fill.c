/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * trust_fill CHILDREN FILE: wants all of the sampler's memory. That many forked children allocate at
 * period 1, which they set themselves, by stacks that never come again, until FILE is there.
 */
#include "proto/region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 60 };

static struct region_header *header;

static void find_region(void)
{
	char line[4352];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && !header && fgets(line, sizeof(line), maps)) {
		unsigned long start;

		if (strstr(line, "/memfd:heaptap") && sscanf(line, "%lx", &start) == 1)
			header = (struct region_header *)start;
	}
	if (!header || fclose(maps) != 0)
		exit(3);
}

#define NAMED __attribute__((noinline, noclone))
#define STAY  __asm__ volatile("")

static NAMED void right(unsigned long way, unsigned int depth);

static NAMED void left(unsigned long way, unsigned int depth)
{
	if (depth == 0)
		free(malloc(64));
	else if (way & 1)
		left(way >> 1, depth - 1);
	else
		right(way >> 1, depth - 1);
	STAY;
}

static NAMED void right(unsigned long way, unsigned int depth)
{
	if (depth == 0)
		free(malloc(64));
	else if (way & 1)
		left(way >> 1, depth - 1);
	else
		right(way >> 1, depth - 1);
	STAY;
}

static void fill(unsigned long state, const char *enough)
{
	for (unsigned long i = 0; i % 1024 != 0 || access(enough, F_OK) != 0; i++) {
		atomic_store(&header->period_bytes, 1);
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		left(state, DEPTH);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	find_region();
	for (int i = 0; i < atoi(argv[1]); i++)
		if (fork() == 0) {
			fill(0x9e3779b97f4a7c15ul * (unsigned long)(i + 1), argv[2]);
			_exit(0);
		}
	while (wait(NULL) > 0)
		continue;
	return 0;
}

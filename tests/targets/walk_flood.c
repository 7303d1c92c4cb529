/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * Two functions that call each other in 8192 orders, each the stack of an allocation: first a few of them,
 * slowly, so that their rows are known; then all, 25 times, as fast as it goes. Prints the allocations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEPTH = 13, STACKS = 1 << DEPTH, ROUNDS = 25, SLOW_ROUNDS = 200 };

static unsigned long allocations;

static void descend(unsigned int path, int depth);

__attribute__((noinline)) static void *allocate(size_t bytes)
{
	void *block = malloc(bytes);

	__asm__ volatile("" : "+r"(block));
	allocations++;
	return block;
}

__attribute__((noinline)) static void left(unsigned int path, int depth)
{
	descend(path, depth);
	__asm__ volatile("# left" ::: "memory");
}

__attribute__((noinline)) static void right(unsigned int path, int depth)
{
	descend(path, depth);
	__asm__ volatile("# right" ::: "memory");
}

__attribute__((noinline)) static void descend(unsigned int path, int depth)
{
	if (depth == 0)
		free(allocate(100));
	else if (path & 1)
		left(path >> 1, depth - 1);
	else
		right(path >> 1, depth - 1);
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	for (unsigned int i = 0; i < SLOW_ROUNDS; i++) {
		descend(i % 4, 2);
		usleep(1000);
	}
	for (unsigned int round = 0; round < ROUNDS; round++)
		for (unsigned int path = 0; path < STACKS; path++)
			descend(path, DEPTH);
	printf("%lu\n", allocations);
	return 0;
}

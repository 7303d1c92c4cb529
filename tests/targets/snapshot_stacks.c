/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_stacks N: N live blocks of 1000 bytes from 1024 different stacks of 14 frames; says "ready", then
 * waits for its input to end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAMED         __attribute__((noinline, noclone))
#define STAY(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

static NAMED void *left(uint32_t path, int depth);

static NAMED void *right(uint32_t path, int depth)
{
	void *block = depth == 0 ? malloc(1000)
	    : path & 1           ? left(path >> 1, depth - 1)
	                         : right(path >> 1, depth - 1);

	STAY(block);
	return block;
}

static NAMED void *left(uint32_t path, int depth)
{
	void *block = depth == 0 ? malloc(1000)
	    : path & 1           ? left(path >> 1, depth - 1)
	                         : right(path >> 1, depth - 1);

	STAY(block);
	return block;
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
	char byte;

	for (uint32_t i = 0; i < count; i++) {
		left(i * 2654435761u >> 22, 10);
		if (i % 64 == 63)
			usleep(100); /* not a flood */
	}
	puts("ready");
	fflush(stdout);
	return read(0, &byte, 1) < 0;
}

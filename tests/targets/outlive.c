/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outlive: allocates 400 blocks in before(), makes the file `ready`, waits for the file `go`, frees 200 of
 * them and allocates 300 more in after(). Exit status 7. For samplers that die in between.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static void *before(size_t size)
{
	void *block = malloc(size);

	memset(block, 1, size);
	return block;
}

__attribute__((noinline)) static void *after(size_t size)
{
	void *block = malloc(size);

	memset(block, 2, size);
	return block;
}

int main(void)
{
	static void *blocks[400], *more[300];

	for (int i = 0; i < 400; i++)
		blocks[i] = before(100000);
	FILE *ready = fopen("ready", "w");
	if (!ready || fclose(ready) != 0)
		return 1;
	for (int i = 0; i < 60000 && access("go", F_OK) != 0; i++)
		usleep(10000);
	for (int i = 0; i < 200; i++)
		free(blocks[i]);
	for (int i = 0; i < 300; i++)
		more[i] = after(50000);
	return blocks[399] && more[299] ? 7 : 1;
}

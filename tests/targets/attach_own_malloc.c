/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * A program that contains its allocator, as those with a static jemalloc do: its own calls of malloc go by no
 * slot, but those of the libc do. It says "ready"; for each line on standard input copy_text has 100 texts of
 * 1,000 bytes copied by the libc, and it says "done". A second thread is in the allocator nearly all the
 * time.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARENA_BYTES = 64 << 20, BLOCK_ALIGNMENT = 16 };

static unsigned char arena[ARENA_BYTES] __attribute__((aligned(BLOCK_ALIGNMENT)));
static size_t used;
static char *volatile kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Nothing is given back: what a test needs fits. A size of 1 to 15 takes long, and nothing. */
__attribute__((noinline)) static void *take(size_t bytes)
{
	size_t whole = (bytes + 2 * BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
	void *block = NULL;

	pthread_mutex_lock(&lock);
	if (bytes > 0 && bytes < BLOCK_ALIGNMENT) {
		for (volatile int i = 0; i < 100000; i++)
			;
	} else if (used + whole <= ARENA_BYTES) {
		memcpy(arena + used, &bytes, sizeof(bytes));
		block = arena + used + BLOCK_ALIGNMENT;
		used += whole + BLOCK_ALIGNMENT;
	}
	pthread_mutex_unlock(&lock);
	return block;
}

void *malloc(size_t bytes)
{
	return take(bytes < BLOCK_ALIGNMENT ? BLOCK_ALIGNMENT : bytes);
}

void free(void *block)
{
}

void *calloc(size_t count, size_t bytes)
{
	return malloc(count * bytes);
}

void *realloc(void *old, size_t bytes)
{
	size_t had = 0;
	unsigned char *block = malloc(bytes);

	if (old)
		memcpy(&had, (unsigned char *)old - BLOCK_ALIGNMENT, sizeof(had));
	if (block && old)
		memcpy(block, old, had < bytes ? had : bytes);
	return block;
}

static void *never_rest(void *argument)
{
	for (;;)
		take(1);
	return argument;
}

__attribute__((noinline)) static void copy_text(void)
{
	static char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	for (int i = 0; i < 100; i++)
		kept = strdup(text);
}

int main(void)
{
	pthread_t thread;
	char byte;

	setvbuf(stdout, NULL, _IONBF, 0);
	pthread_create(&thread, NULL, never_rest, NULL);
	puts("ready");
	while (read(0, &byte, 1) == 1) {
		copy_text();
		puts("done");
	}
	return 0;
}

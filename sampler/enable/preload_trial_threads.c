/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/preload_trial.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 20000, SLOTS = 512, SIZE_MOST = 8192 };

/* Each is filled with its size, so that a block that somebody else has been given shows. */
struct block {
	size_t bytes;
	unsigned char content[];
};

static _Atomic(struct block *) slots[SLOTS];

static struct block *make_block(unsigned int *seed)
{
	size_t bytes = sizeof(struct block) + (size_t)rand_r(seed) % SIZE_MOST;
	struct block *block = bytes % 3 ? malloc(bytes) : calloc(1, bytes);

	if (block && bytes % 5 == 0) {
		struct block *larger = realloc(block, bytes * 2);

		if (!larger)
			free(block);
		block = larger;
	}
	if (!block)
		return NULL;
	block->bytes = bytes;
	memset(block->content, (int)(bytes & 0xff), bytes - sizeof(*block));
	return block;
}

static bool is_whole(const struct block *block)
{
	for (size_t i = 0; i < block->bytes - sizeof(*block); i++)
		if (block->content[i] != (block->bytes & 0xff))
			return false;
	return true;
}

/* Puts its blocks where another thread takes them away. NULL: all were whole. */
static void *work(void *argument)
{
	unsigned int seed = (unsigned int)(uintptr_t)argument;
	void *fault = NULL;

	for (int i = 0; i < ROUNDS; i++) {
		struct block *old = atomic_exchange(&slots[(size_t)rand_r(&seed) % SLOTS], make_block(&seed));

		if (old && !is_whole(old))
			fault = old;
		free(old);
	}
	return fault;
}

int preload_trial_threads(void)
{
	pthread_t threads[THREADS];
	size_t started = 0;
	bool good = true;

	while (started < THREADS &&
	    pthread_create(&threads[started], NULL, work, (void *)(uintptr_t)(started + 1)) == 0)
		started++;
	for (size_t i = 0; i < started; i++) {
		void *fault = NULL;

		good = pthread_join(threads[i], &fault) == 0 && !fault && good;
	}
	for (size_t i = 0; i < SLOTS; i++)
		free(slots[i]);
	puts(good && started == THREADS ? "whole" : "broken");
	return good && started == THREADS ? 0 : 1;
}

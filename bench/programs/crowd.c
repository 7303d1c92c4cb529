/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd KIBIBYTES SECONDS: each second allocates that much in blocks of 1 to 8 KiB, of which a tenth stays
 * for a minute and the rest goes at once; ends after SECONDS. A service among many, for bench/daemon.sh.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEPT = 4096 };

static void *kept[KEPT];
static unsigned turn;

static __attribute__((noinline)) void *answer(size_t bytes)
{
	char *block = malloc(bytes);

	if (block)
		memset(block, 1, 64);
	return block;
}

static __attribute__((noinline)) void serve(size_t bytes)
{
	void *block = answer(bytes);

	if (rand() % 10 == 0) {
		free(kept[turn % KEPT]);
		kept[turn++ % KEPT] = block;
	} else {
		free(block);
	}
}

int main(int argc, char *argv[])
{
	long kibibytes = argc > 2 ? atol(argv[1]) : 256, seconds = argc > 2 ? atol(argv[2]) : 10;
	const struct timespec pause = {.tv_nsec = 100000000};

	srand((unsigned)(uintptr_t)&argc);
	for (long i = 0; i < seconds * 10; i++) {
		for (long left = kibibytes * 1024 / 10; left > 0;) {
			size_t bytes = 1024 + (size_t)rand() % 7168;

			serve(bytes);
			left -= (long)bytes;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* stacks N: 16 KiB from each of N different stacks, eight times; the way down to it is N's digits, base 4. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STAY __asm__ volatile("" : : : "memory")

static void way(uint64_t n, unsigned int left);

#define TURN(name)                                                                       \
	static __attribute__((noinline, noipa)) void name(uint64_t n, unsigned int left) \
	{                                                                                \
		way(n, left);                                                            \
		STAY;                                                                    \
	}                                                                                \
	_Static_assert(1, "takes the semicolon")

TURN(north);
TURN(east);
TURN(south);
TURN(west);

static __attribute__((noinline, noipa)) void way(uint64_t n, unsigned int left)
{
	static void (*const turns[4])(uint64_t, unsigned int) = {north, east, south, west};
	if (left == 0) {
		void *block = malloc(16 << 10);

		__asm__ volatile("" : : "r"(block) : "memory");
		free(block);
		return;
	}
	turns[n % 4](n / 4, left - 1);
	STAY;
}

int main(int argc, char *argv[])
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	unsigned int digits = 1;

	while (1ull << 2 * digits < count)
		digits++;
	for (int round = 0; round < 8; round++)
		for (uint64_t n = 0; n < count; n++)
			way(n, digits);
	return 0;
}

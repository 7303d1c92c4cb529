/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that does what its standard input says, a line at a time, and answers "done"; between lines
 * it does
 * nothing. At the end of its input it ends.
 *
 *   hold N    N blocks of 1000 bytes more, by take_held()
 *   drop      frees them all
 *   quit      ends
 *   spin      keeps a CPU busy, in spin_here(), until there is another line
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED         __attribute__((noinline, noclone))
#define STAY(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

enum { HELD_MAX = 100000 };

static void *held[HELD_MAX];
static size_t held_count;

static NAMED void *take_held(void)
{
	void *block = malloc(1000);

	STAY(block);
	return block;
}

static NAMED void spin_here(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};

	while (poll(&input, 1, 0) == 0)
		for (volatile int i = 0; i < 1000000; i++)
			;
}

int main(void)
{
	static char line[64], out[4096];

	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, out, _IOLBF, sizeof(out));
	puts("done");
	while (fgets(line, sizeof(line), stdin)) {
		size_t count = strncmp(line, "hold ", 5) == 0 ? strtoul(line + 5, NULL, 10) : 0;

		while (count-- && held_count < HELD_MAX)
			held[held_count++] = take_held();
		while (strcmp(line, "drop\n") == 0 && held_count)
			free(held[--held_count]);
		if (strcmp(line, "quit\n") == 0)
			break;
		if (strcmp(line, "spin\n") == 0)
			spin_here();
		puts("done");
	}
	return 0;
}

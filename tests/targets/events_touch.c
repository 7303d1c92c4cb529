/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events_touch MIB small|huge: maps MIB mebibytes and touches them for the first time from three functions,
 * which get 1/2, 3/8 and 1/8 of it; small: without huge pages, huge: with them as far as the kernel has some.
 * Touches everything once more, which must not count. Prints "touched touch_half BYTES touch_three BYTES
 * touch_one BYTES resident KIB huge KIB": what the kernel has for the mapping at the end.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)

static void touch(volatile char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096)
		at[i] = 1;
}

/* A function of its own each: without the comment in assembly the compiler makes equal ones one. */
#define TOUCHER(name)                                                      \
	__attribute__((noinline)) static void name(char *at, size_t bytes) \
	{                                                                  \
		touch(at, bytes);                                          \
		__asm__ volatile("# " #name);                              \
	}
TOUCHER(touch_half)
TOUCHER(touch_three)
TOUCHER(touch_one)
TOUCHER(touch_again)

/* "Rss:" and "AnonHugePages:" of the mapping at `start`. */
static void read_smaps(uintptr_t start, size_t bytes, unsigned long *resident, unsigned long *huge)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	char line[512];
	int inside = 0;
	unsigned long from, to, value;

	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from < start + bytes && to > start;
		else if (inside && sscanf(line, "Rss: %lu", &value) == 1)
			*resident += value;
		else if (inside && sscanf(line, "AnonHugePages: %lu", &value) == 1)
			*huge += value;
	}
	if (smaps)
		fclose(smaps);
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 2 ? strtoul(argv[1], NULL, 10) << 20 : 0;

	if (!bytes)
		return 2;
	char *map =
	    mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return 1;
	map += HUGE_BYTES - (uintptr_t)map % HUGE_BYTES;
	madvise(map, bytes, strcmp(argv[2], "huge") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	size_t half = bytes / 2, three = bytes / 8 * 3, one = bytes - half - three;
	touch_half(map, half);
	touch_three(map + half, three);
	touch_one(map + half + three, one);
	touch_again(map, bytes);
	unsigned long resident = 0, huge = 0;
	read_smaps((uintptr_t)map, bytes, &resident, &huge);
	printf("touched touch_half %zu touch_three %zu touch_one %zu resident %lu huge %lu\n", half, three,
	    one, resident, huge);
	return 0;
}

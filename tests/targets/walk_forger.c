/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * Allocates in two functions until the sampler knows both stacks; then swaps the numbers of all stacks that
 * are there, and allocates on. Only its own profile can suffer.
 */
#include "proto/region.h"
#include "proto/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) static void *first(size_t bytes)
{
	void *block = malloc(bytes);

	__asm__ volatile("" : "+r"(block));
	return block;
}

__attribute__((noinline)) static void *second(size_t bytes)
{
	void *block = malloc(bytes + 1);

	__asm__ volatile("" : "+r"(block));
	return block;
}

static void work(void)
{
	for (int i = 0; i < 300; i++) {
		free(first(100));
		free(second(100));
		usleep(500);
	}
}

static struct region_header *find_region(void)
{
	char line[512];
	uintptr_t start;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:heaptap") && sscanf(line, "%lx", &start) == 1) {
			fclose(maps);
			return (struct region_header *)start;
		}
	return NULL;
}

static void swap_numbers(struct walk_numbers *numbers, _Atomic uint32_t *a, _Atomic uint32_t *b)
{
	uint32_t first_number = *a, second_number = *b;
	uint64_t hash = numbers->of[first_number].hash;

	numbers->of[first_number].hash = numbers->of[second_number].hash;
	numbers->of[second_number].hash = hash;
	*a = second_number;
	*b = first_number;
}

static int forge(void)
{
	struct region_header *header = find_region();

	if (!header || header->magic != REGION_MAGIC)
		return 1;
	struct walk_area *area = (void *)((char *)header + header->offsets.walk);
	_Atomic uint32_t *previous = NULL;
	for (size_t i = 0; i < WALK_STACK_ENTRIES; i++) {
		if (!area->numbers.entry[i])
			continue;
		if (previous)
			swap_numbers(&area->numbers, previous, &area->numbers.entry[i]);
		previous = &area->numbers.entry[i];
	}
	return 0;
}

int main(void)
{
	int status = 0;

	for (int round = 0; round < 2 && status == 0; round++) {
		work();
		status = forge();
	}
	return status;
}

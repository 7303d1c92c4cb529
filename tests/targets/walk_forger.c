/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * Allocates in two functions until the sampler has published both stacks; then makes the tables writable and
 * swaps the numbers of all stacks that are there, and allocates on. Only its own profile can suffer.
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

static int forge(void)
{
	struct region_header *header = find_region();
	if (!header || header->magic != REGION_MAGIC)
		return 1;
	struct walk_area *area = (void *)((char *)header + header->offsets.walk);
	const size_t bytes = (size_t)((char *)area->counts - (char *)area->rows);
	if (mprotect(area->rows, bytes, PROT_READ | PROT_WRITE) != 0)
		return 2;
	struct walk_stack *previous = NULL;
	for (size_t i = 0; i < WALK_STACK_ENTRIES; i++) {
		struct walk_stack *stack = &area->stacks[i];
		if (!stack->hash)
			continue;
		if (previous) {
			uint64_t number = previous->number;
			previous->number = stack->number;
			stack->number = number;
		}
		previous = stack;
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

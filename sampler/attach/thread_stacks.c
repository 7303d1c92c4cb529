/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/attach/thread_stacks.h"

#include <string.h>
#include <sys/mman.h>

enum { STACK_LEAST_BYTES = 8 << 10 };

static bool may_be_stack(const struct mapping *mapping)
{
	return (mapping->prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE) && !mapping->shared &&
	    mapping->ino == 0 && strcmp(mapping->path, "[heap]") != 0 &&
	    mapping->end - mapping->start >= STACK_LEAST_BYTES;
}

/* glibc puts pages that allow nothing below each stack; a program's own stacks may have none. */
static bool has_guard(const struct address_space *space, size_t index)
{
	return index > 0 && space->mappings[index - 1].end == space->mappings[index].start &&
	    !(space->mappings[index - 1].prot & (PROT_READ | PROT_WRITE));
}

void thread_stacks_write(const struct address_space *space, const struct region *region)
{
	struct region_stack *stacks = (void *)(region->base + region->offsets.stacks);
	uint32_t count = 0;

	region_header(region)->below_main_stack = 0;
	for (size_t i = 1; i < space->count; i++)
		if (strcmp(space->mappings[i].path, "[stack]") == 0)
			region_header(region)->below_main_stack = space->mappings[i - 1].end;
	for (size_t i = 0; i < space->count && count < REGION_STACKS; i++)
		if (may_be_stack(&space->mappings[i]) && has_guard(space, i))
			stacks[count++] =
			    (struct region_stack){space->mappings[i].start, space->mappings[i].end};
	region_header(region)->thread_stacks = count;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/growth_trace.h"

#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB 1048576.0

enum {
	/* What so many functions call is an allocator's wrapper; a stack begins at what called it. */
	WRAPPER_CALLERS = 8,
	WRAPPERS_MOST = 3,
};

void *growth_trace_need(void *memory)
{
	if (!memory) {
		fprintf(stderr, "growth_replay: no memory\n");
		exit(1);
	}
	return memory;
}

static void *map(const char *path, size_t *bytes)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *memory;

	if (fd < 0 || fstat(fd, &status) || !status.st_size) {
		fprintf(stderr, "growth_replay: cannot read %s\n", path);
		exit(1);
	}
	memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	*bytes = (size_t)status.st_size;
	return memory == MAP_FAILED ? growth_trace_need(NULL) : memory;
}

/* The block at each address, number + 1. */
struct addresses {
	struct {
		uint64_t address;
		size_t block;
	} * slots;
	size_t mask;
};

static size_t *block_at(struct addresses *addresses, uint64_t address)
{
	size_t slot = (size_t)((address * 0x9e3779b97f4a7c15ull) >> 20) & addresses->mask;

	while (addresses->slots[slot].address && addresses->slots[slot].address != address)
		slot = (slot + 1) & addresses->mask;
	addresses->slots[slot].address = address;
	return &addresses->slots[slot].block;
}

static void read_blocks(struct growth_trace *trace, const char *path, double stretch)
{
	size_t bytes, count;
	const struct growth_log_event *events = map(path, &bytes);
	struct addresses addresses = {.mask = 1};

	count = bytes / sizeof(*events);
	while (addresses.mask < 2 * count)
		addresses.mask *= 2;
	addresses.slots = growth_trace_need(calloc(addresses.mask--, sizeof(*addresses.slots)));
	trace->blocks = growth_trace_need(calloc(count + 1, sizeof(*trace->blocks)));
	for (size_t i = 0; i < count; i++) {
		const double now_s = (double)(events[i].time_ns - events[0].time_ns) / 1e9 * stretch;
		size_t *at = block_at(&addresses, events[i].address);

		if (*at)
			trace->blocks[*at - 1].died_s = now_s;
		*at = 0;
		trace->end_s = now_s;
		if (!events[i].bytes)
			continue;
		trace->blocks[trace->block_count++] =
		    (struct growth_block){now_s, INFINITY, trace->bytes, events[i].bytes, events[i].stack};
		trace->bytes += events[i].bytes;
		*at = trace->block_count;
	}
	free(addresses.slots);
	munmap((void *)events, bytes);
}

static uint32_t frame_of(struct growth_trace *trace, uint64_t function)
{
	for (uint32_t f = 0; f < trace->frame_count; f++)
		if (trace->functions[f] == function)
			return f;
	trace->functions[trace->frame_count] = function;
	return trace->frame_count++;
}

static bool is_wrapper(const struct growth_trace *trace, uint32_t frame)
{
	uint32_t callers[WRAPPER_CALLERS], count = 0;

	for (uint32_t s = 0; s < trace->stack_count; s++)
		for (uint32_t i = 0; i + 1 < trace->stacks[s].depth; i++) {
			const uint32_t *at = &trace->frames[s * GROWTH_LOG_DEPTH + i];
			uint32_t known = 0;

			while (at[0] == frame && known < count && callers[known] != at[1])
				known++;
			if (at[0] != frame || known < count)
				continue;
			callers[count++] = at[1];
			if (count == WRAPPER_CALLERS)
				return true;
		}
	return false;
}

/* The stacks, and that of a leak in a function of its own, which the same function calls as the others. */
static void read_stacks(struct growth_trace *trace, const char *path)
{
	char name[4096];
	size_t bytes;
	const struct growth_log_stack *stacks;
	bool *wraps;

	snprintf(name, sizeof(name), "%s.stacks", path);
	stacks = map(name, &bytes);
	trace->stack_count = (uint32_t)(bytes / sizeof(*stacks)) + 1;
	trace->stacks = growth_trace_need(calloc(trace->stack_count, sizeof(*stacks)));
	memcpy(trace->stacks, stacks, bytes);
	munmap((void *)stacks, bytes);
	trace->leak_stack = trace->stack_count - 1;
	trace->stacks[trace->leak_stack] = (struct growth_log_stack){2, {1, 2}};
	trace->heads = growth_trace_need(calloc(trace->stack_count, sizeof(*trace->heads)));
	trace->frames =
	    growth_trace_need(calloc((size_t)trace->stack_count * GROWTH_LOG_DEPTH, sizeof(*trace->frames)));
	trace->functions =
	    growth_trace_need(calloc((size_t)trace->stack_count * GROWTH_LOG_DEPTH, sizeof(uint64_t)));
	for (uint32_t s = 0; s < trace->stack_count; s++)
		for (uint32_t i = 0; i < trace->stacks[s].depth; i++)
			trace->frames[s * GROWTH_LOG_DEPTH + i] =
			    frame_of(trace, trace->stacks[s].functions[i]);
	wraps = growth_trace_need(calloc(trace->frame_count + 1, sizeof(*wraps)));
	for (uint32_t f = 0; f < trace->frame_count; f++)
		wraps[f] = is_wrapper(trace, f);
	for (uint32_t s = 0; s < trace->stack_count; s++)
		while (trace->heads[s] < WRAPPERS_MOST && trace->heads[s] + 1 < trace->stacks[s].depth &&
		    wraps[trace->frames[s * GROWTH_LOG_DEPTH + trace->heads[s]]])
			trace->heads[s]++;
	free(wraps);
}

/* What most memory is in use by, in the mean over time. */
static void find_churn(struct growth_trace *trace)
{
	double *held = growth_trace_need(calloc(trace->stack_count, sizeof(*held))), mean = 0;

	for (size_t i = 0; i < trace->block_count; i++) {
		const struct growth_block *block = &trace->blocks[i];

		held[block->stack] += block->bytes * (fmin(block->died_s, trace->end_s) - block->born_s);
	}
	for (uint32_t s = 0; s < trace->stack_count; s++) {
		mean += held[s] / trace->end_s / MIB;
		if (held[s] > held[trace->churn_stack])
			trace->churn_stack = s;
	}
	printf(
	    "%zu blocks of %.0f MiB in %.0f s by %u stacks; %.1f MiB in use in the mean, %.1f of it by one "
	    "stack\n",
	    trace->block_count, trace->bytes / MIB, trace->end_s, trace->stack_count - 1, mean,
	    held[trace->churn_stack] / trace->end_s / MIB);
	free(held);
}

void growth_trace_read(struct growth_trace *trace, const char *path, double stretch)
{
	read_blocks(trace, path, stretch);
	read_stacks(trace, path);
	find_churn(trace);
}

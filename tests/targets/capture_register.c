/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * capture_register: overwrites the stack pointer in the shared buffer of a copied stack, in the instant after
 * the hook has stored it, as another process with that memory could. Exit status 77: no breakpoints here, 4:
 * no stack was copied.
 */
#define _GNU_SOURCE
#include "proto/buffer.h"
#include "tests/targets/own_region.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#if defined(__aarch64__)
enum { SP = 12 };
#else
enum { SP = 2 };
#endif

/* There are four breakpoints: for a buffer of each class but the smallest, for which the stack of main is too
 * deep, and the largest, which it does not reach. */
enum { WATCHED = 4 };
_Static_assert(WATCHED == BUFFER_CLASSES - 2, "a class more needs another way to watch");

static int events[WATCHED];
static volatile uint64_t *words[WATCHED];
static volatile sig_atomic_t overwritten;

static void overwrite(int number)
{
	(void)number;
	for (int i = 0; i < WATCHED; i++)
		ioctl(events[i], PERF_EVENT_IOC_DISABLE, 0);
	for (int i = 0; i < WATCHED; i++)
		*words[i] = 0x1000;
	overwritten = 1;
}

static void watch(const struct region_header *header)
{
	const char *buffers = (const char *)header + header->offsets.buffers + BUFFER_BITMAPS_BYTES;

	for (int i = 0; i < WATCHED; i++) {
		buffers += (size_t)buffer_class[i].count * buffer_class[i].bytes;
		words[i] = (volatile uint64_t *)&((struct region_buffer *)buffers)->regs[SP];
		struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
		    .size = sizeof(attr),
		    .bp_type = HW_BREAKPOINT_W,
		    .bp_addr = (unsigned long)words[i],
		    .bp_len = 8,
		    .sample_period = 1,
		    .sigtrap = 1,
		    .remove_on_exec = 1,
		    .exclude_kernel = 1,
		    .exclude_hv = 1};
		events[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
		if (events[i] < 0)
			exit(77);
	}
}

int main(void)
{
	volatile char deep[4096];

	memset((char *)deep, 1, sizeof(deep));
	signal(SIGTRAP, overwrite);
	const struct region_header *header = own_region();
	if (!header)
		exit(3);
	watch(header);
	/* Until the first buffer of a class is free again and is written: a minute at most. */
	for (int i = 0; i < 100 || (!overwritten && i < 60000); i++) {
		free(malloc(1000));
		if (!overwritten)
			usleep(1000);
	}
	return overwritten ? 0 : 4;
}

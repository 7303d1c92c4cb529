/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For test programs that are profiled: their own region, as the library has mapped it.
 */
#ifndef TESTS_TARGETS_OWN_REGION_H
#define TESTS_TARGETS_OWN_REGION_H

#include "proto/region.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* NULL: there is none. */
static inline struct region_header *own_region(void)
{
	char line[4352];
	struct region_header *header = NULL;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && !header && fgets(line, sizeof(line), maps)) {
		unsigned long start;

		if (strstr(line, "/memfd:heaptap") && sscanf(line, "%lx", &start) == 1)
			header = (struct region_header *)start;
	}
	if (maps)
		fclose(maps);
	return header;
}

/* A program under a uprobe or breakpoint that works at once may end before the sampler has opened that:
 * the hook copies until then. 0, or 10 after a minute. */
static inline int await_event(void)
{
	struct region_header *header = own_region();

	for (int i = 0; header && header->mode != REGION_MODE_TRIGGER && i < 60000; i++)
		usleep(1000);
	return header && header->mode == REGION_MODE_TRIGGER ? 0 : 10;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a program run reports of itself, in words. */
#include "sampler/intake/region.h"

#include "pprof/text/utf8.h"

#include <stdio.h>
#include <string.h>

const char *region_declined_text(const struct region *region)
{
	const struct region_header *header = region_header(region);

	if (atomic_load_explicit(&header->state, memory_order_acquire) != REGION_DECLINED)
		return NULL;
	switch ((enum region_declined)header->declined) {
	case REGION_DECLINED_NO_MEMORY:
		return "its limit of address space or of data (ulimit -v, ulimit -d) leaves no room for the "
		       "profiler's memory";
	case REGION_DECLINED_NO_FORK_NOTICE:
		return "the library has no means to notice a fork";
	case REGION_DECLINED_OVERCOMMIT:
		return "the kernel may refuse a page of the profiler's memory when it is used, which would "
		       "end the program (vm.overcommit_memory is 2)";
	case REGION_DECLINED_SANITIZER:
		return "the runtime of gcc's ThreadSanitizer must be ready before the library is";
	default:
		return "for an unknown reason";
	}
}

void region_program_path(const struct region *region, char path[REGION_PATH_BYTES])
{
	struct region_module first;
	const unsigned char *at = region->base + region->offsets.modules;

	memcpy(&first, at, sizeof(first));
	memcpy(path, at + sizeof(first), REGION_PATH_BYTES);
	path[first.path_bytes >= 1 && first.path_bytes <= REGION_PATH_BYTES ? first.path_bytes - 1 : 0] =
	    '\0';
}

void region_program_command_line(const struct region *region, char line[REGION_COMMAND_LINE_BYTES])
{
	memcpy(line, region->base + region->offsets.command_line, REGION_COMMAND_LINE_BYTES);
	line[REGION_COMMAND_LINE_BYTES - 1] = '\0';
}

bool region_unseen_malloc(const struct region *region)
{
	return region_header(region)->unseen & REGION_UNSEEN_MALLOC;
}

bool region_unseen_files(const struct region *region, char files[REGION_PATH_BYTES])
{
	const struct region_header *header = region_header(region);

	files[0] = '\0';
	if (!(header->unseen & REGION_UNSEEN_FILES))
		return false;
	memcpy(files, header->unseen_files, REGION_PATH_BYTES);
	files[REGION_PATH_BYTES - 1] = '\0';
	utf8_disarm(files, strlen(files));
	return files[0];
}

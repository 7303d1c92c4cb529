/* SPDX-License-Identifier: Apache-2.0 */
/* What an image reports of itself, in words. */
#include "sampler/region/region.h"

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

const char *region_unseen_text(const struct region *region, char text[REGION_UNSEEN_BYTES])
{
	const struct region_header *header = region_header(region);
	uint32_t unseen = header->unseen;
	if (unseen & REGION_UNSEEN_FILES) {
		char files[REGION_PATH_BYTES];
		memcpy(files, header->unseen_files, sizeof(files));
		files[sizeof(files) - 1] = '\0';
		for (char *c = files; *c; c++)
			*c = *c >= ' ' && *c <= '~' ? *c : '?';
		snprintf(text, REGION_UNSEEN_BYTES,
		    "not seen: calls that lead by no import slot to the allocator, in %s", files);
		return text;
	}
	if (!(unseen & REGION_UNSEEN_MALLOC))
		return NULL;
	snprintf(text, REGION_UNSEEN_BYTES,
	    "not seen: the program has a malloc of its own, which comes before heaptap's");
	return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process has a region mapped: a pid that a target wrote into shared memory proves nothing. */
#ifndef SAMPLER_INTAKE_REGION_MAPPED_H
#define SAMPLER_INTAKE_REGION_MAPPED_H

#include "sampler/intake/region.h"

#include <sys/types.h>

enum region_mapped {
	REGION_MAPPED_NO,
	REGION_MAPPED,
	REGION_MAPPED_SECRET, /* the process is not dumpable, and we are not privileged */
	REGION_MAPPED_UNREAD, /* no descriptor or memory was left to look */
};

enum region_mapped region_mapped_by(const struct region *region, pid_t pid);

/* Whether a process that had the region mapped still has it. False for ourselves and for our children, which
 * write profiles and have all that we have mapped. True if the process' maps could not be read. */
bool region_mapped_still(const struct region *region, pid_t pid);

/* The same of regions in anonymous memory, and of all processes that there are: the maps of each are read
 * once. */
struct region_search {
	const struct region *region;
	void *context; /* the caller's */
	/* REGION_MAPPED, and by whom; REGION_MAPPED_NO; or REGION_MAPPED_UNREAD: not all could be asked */
	enum region_mapped answer;
	pid_t pid;
};
void region_search_all(struct region_search *searches, size_t count); /* changes their order */

#endif

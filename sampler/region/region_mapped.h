/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process has a region mapped: a pid that a target wrote into shared memory proves nothing. */
#ifndef SAMPLER_REGION_REGION_MAPPED_H
#define SAMPLER_REGION_REGION_MAPPED_H

#include "sampler/region/region.h"

#include <sys/types.h>

enum region_mapped {
	REGION_MAPPED_NO,
	REGION_MAPPED,
	REGION_MAPPED_SECRET, /* the process is not dumpable, and we are not privileged */
	REGION_MAPPED_UNREAD, /* no descriptor or memory was left to look */
};

enum region_mapped region_mapped_by(const struct region *region, pid_t pid);

/* Whether any process has it mapped but we and our children, which write profiles. Looks at all of them. */
bool region_mapped_by_any(const struct region *region);

#endif

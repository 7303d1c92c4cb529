/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adoption: a sampler has died, its target runs on, and the shared region is still mapped there. A new
 * sampler finds it in the target's address space and goes on with the books: what is live is in the region,
 * whole and right; only which stacks it came from has died with the old sampler.
 */
#ifndef SAMPLER_REGION_REGION_TAKEOVER_H
#define SAMPLER_REGION_REGION_TAKEOVER_H

#include "sampler/region/region.h"

#include <stddef.h>
#include <sys/types.h>

/*
 * Opens the region that pid has mapped; its header must be one that region_open could have written. The
 * caller owns it. Returns 0; -EBUSY: its sampler lives; -ENOENT: pid has none (not profiled, or it has
 * executed another program); -EPROTO: another version's or damaged; -EPERM: opening another process' mapping
 * needs root (CAP_CHECKPOINT_RESTORE); or -errno.
 */
int region_takeover_open(pid_t pid, struct region *region);

/* Path of the library as the target has it mapped, for the probes must be on its very inode. Returns 0 or
 * -errno. */
int region_takeover_library(pid_t pid, uint64_t trigger_address, char *path, size_t path_bytes);

#endif

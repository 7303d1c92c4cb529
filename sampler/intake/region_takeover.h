/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adoption: a sampler has died, its target keeps running, and the shared region is still mapped there. A new
 * sampler finds it in the target's address space and continues the books: the region has all live blocks;
 * only their stacks were lost with the old sampler.
 */
#ifndef SAMPLER_INTAKE_REGION_TAKEOVER_H
#define SAMPLER_INTAKE_REGION_TAKEOVER_H

#include "pprof/text/throttle.h"
#include "sampler/intake/region.h"

#include <stddef.h>
#include <sys/types.h>

/*
 * Opens the region that pid has mapped; its header must be one that region_open could have written. The
 * caller owns it. Returns 0; -EBUSY: its sampler lives; -ENOENT: pid has none (not profiled, or it has
 * executed another program); -EPROTO: made by another version, or damaged; -EPERM: opening another process'
 * mapping needs root (CAP_CHECKPOINT_RESTORE); or -errno.
 */
int region_takeover_open(pid_t pid, struct region *region);

/*
 * Gives the region, which pid has mapped at `start`, its buffers. A process that has changed its user id has
 * them no more: then those of the processes from which it was forked are taken, if one of them still has the
 * region. If nobody has them, nobody copies stacks there any more, and the region is left without. Returns 0
 * or -errno.
 */
int region_takeover_buffers(struct region *region, pid_t pid, uint64_t start);

/* Whether the size of a file in memory cannot change any more. Seals it; anonymous: it cannot be sealed, and
 * must be memory of which nobody can have a descriptor. */
bool region_takeover_is_safe(int fd, bool anonymous);

/* Whether another sampler reads it: the one that its header names, and that has a descriptor of it. */
bool region_takeover_is_read(const struct region *region);

/*
 * The same for a caller that asks about many regions, again and again. Each answer may cost a look at a
 * million descriptors of a process, and the process can cause the question: 200 processes of another
 * session, each with 900 descriptors, took three seconds beside a load. `effort` counts descriptors. Beyond
 * 16,384 a second the answer is "may be read". A header that names no process, or a process that is gone,
 * costs nothing. *sampler_pid: the process that the header named.
 */
bool region_takeover_may_be_read(const struct region *region, struct throttle *effort, uint32_t *sampler_pid);

/* Makes us the region's sampler. False if another sampler took the region after sampler_pid was read (above).
 * Two samplers of a region would give its places back twice. */
bool region_takeover_claim(const struct region *region, uint32_t sampler_pid);

/* The pid of the sampler that reads the region that pid has mapped; 0: it is gone, or cannot be told. */
pid_t region_takeover_sampler(pid_t pid);

/*
 * The library that the target has mapped: the probe must be on the same inode. The target says which mapping
 * that is; so the file must be our own library (own_path), or a copy with its build id that root or we own
 * and that nobody else may write: a probe anywhere else would be a breakpoint in a file of the target's
 * choice. Returns a descriptor, and in *file_offset where trigger_address is in the file, to be compared with
 * what the library's own note says; -EACCES: another file; or -errno.
 */
int region_takeover_library(pid_t pid, uint64_t trigger_address, const char *own_path, uint64_t *file_offset);

#endif

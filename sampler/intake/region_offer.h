/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's side of an offer (proto/region.h): finds the region that a process has made itself, opens it,
 * and turns it on. The process may be hostile, and may have prepared the mapping as it likes:
 *
 *   size       each of the two files must be sealed against shrinking, which is done here; or be anonymous
 *              shared memory, of which no descriptor exists and which only root can reach through
 *              /proc/PID/map_files
 *   layout     the header must have magic, ABI, segments and offsets as this build makes them; from then on
 *              only our own copies of them are used (region.h)
 *   its place  only a mapping from the beginning of the file, shared and writable, is looked at, and only a
 *              file in memory is opened
 */
#ifndef SAMPLER_INTAKE_REGION_OFFER_H
#define SAMPLER_INTAKE_REGION_OFFER_H

#include "sampler/intake/region.h"
#include "sampler/intake/region_takeover.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct region_offer {
	struct region region;
	struct throttle *effort; /* the caller's: one for all offers that it looks at */
	bool used;               /* an earlier daemon has turned the region on */
	uint64_t session;        /* the session of that daemon, or 0 */
	uint32_t sampler_pid;    /* the sampler that the header names */
	/* after -EPROTO: the library's REGION_ABI if that is not ours; 0 if there is no region */
	uint32_t abi;
};

/* Reads offer->effort and fills in the rest. The caller owns offer->region on success. Returns 0; -ENOENT if
 * the process offers nothing; -EAGAIN if it is just making its offer; -EPROTO if the region is another
 * version's, or nonsense; -EBUSY if another daemon has it; -EPERM if we may not open map_files (which needs
 * CAP_CHECKPOINT_RESTORE); -ESRCH; or -errno. */
int region_offer_open(struct region_offer *offer, pid_t pid);

/* The region of /proc/PID/maps that may be an offer; pure, one line at a time. */
struct region_offer_range {
	uint64_t start, end, ino;
	bool anonymous;
};
bool region_offer_parse(const char *maps_line, struct region_offer_range *range);

/* What a region starts with: written before region_offer_turn. */
struct region_offer_terms {
	uint32_t id;
	uint64_t key, period_bytes;
	uint32_t clock_id; /* region_clock() */
	uint64_t session;  /* what tells daemons that follow each other from strangers */
	/* as region_offer_open() said */
	bool used;
	uint32_t sampler_pid;
};

/* Returns 0; -EBUSY: another daemon has taken it meanwhile, and nothing was written. */
int region_offer_accept(struct region *region, const struct region_offer_terms *terms);

/* From now on the processes of the region take samples (on), or take none. */
void region_offer_turn(const struct region *region, bool on);

#endif

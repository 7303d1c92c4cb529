/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process had mapped when a stack was copied, where no records of the kernel tell: it may have called
 * dlclose since, and another file be where the one was.
 *
 * All times are the process' own count of its calls of dlclose (proto/loader_log.h). The maps that were read
 * while it did not change are those of that time; of any other time the code that is never unmapped is known,
 * and of libraries what the process has noted. Of two that may have been in one place at that time, neither is
 * believed.
 */
#ifndef SAMPLER_TARGET_PAST_MAPS_H
#define SAMPLER_TARGET_PAST_MAPS_H

#include "proto/region.h"
#include "sampler/unwind/maps.h"

#include <stdbool.h>
#include <stdint.h>

struct target;

/* The process' count and notes, in shared memory: hostile. */
struct past_source {
	const struct region_place *place; /* NULL: it does not count */
	const struct region_header *header;
	const struct loader_log *log;
	uint64_t log_until; /* up to that count the notes are of this process: an ancestor has made them */
};

struct past_maps {
	struct past_source source;
	uint64_t read_at;  /* when the target's maps were read, or PAST_UNKNOWN */
	uint64_t readings; /* of the target's maps */
	/* those of another time; NULL: none yet */
	struct maps *maps;
	uint64_t at, of_reading;
	bool whole; /* the process has noted all of that time */
};

#define PAST_UNKNOWN UINT64_MAX

/* Its count now; 0: it does not count. */
uint64_t past_maps_now(const struct past_maps *past);

/* The target's maps were read, between these two counts. */
void past_maps_note(struct past_maps *past, uint64_t before, uint64_t after);

/* The maps of that time; the target's own if they are. Valid until the next call, or reading. */
struct maps *past_maps_at(struct target *target, uint64_t unmaps);

void past_maps_free(struct past_maps *past);

#endif

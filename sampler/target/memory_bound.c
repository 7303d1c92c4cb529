/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/target/memory_bound.h"

#include "pprof/text/log_line.h"

#include <inttypes.h>
#include <unistd.h>

#define DEFAULT_BYTES    (UINT64_C(1) << 30)
#define ROOM_LEAST_BYTES (UINT64_C(64) << 10) /* the maps of a program with 300 libraries */

uint64_t memory_bound_bytes(uint64_t rss_max_bytes)
{
	if (rss_max_bytes)
		return rss_max_bytes / 2;
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t quarter = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes / 4 : 0;
	return quarter && quarter < DEFAULT_BYTES ? quarter : DEFAULT_BYTES;
}

bool memory_bound_allows(const struct memory_bound *bound, uint64_t own_bytes)
{
	return !bound->max_bytes ||
	    (bound->held_bytes < bound->max_bytes && own_bytes < bound->max_bytes - bound->held_bytes);
}

uint64_t memory_bound_room(const struct memory_bound *bound, uint64_t own_bytes)
{
	const uint64_t others = bound->held_bytes > own_bytes ? bound->held_bytes - own_bytes : 0,
	               left = others < bound->max_bytes ? (bound->max_bytes - others) / 2 : 0;
	return !bound->max_bytes ? 0 : left > ROOM_LEAST_BYTES ? left : ROOM_LEAST_BYTES;
}

void memory_bound_note(struct memory_bound *bound, uint64_t *own_bytes, uint64_t now_bytes)
{
	bound->held_bytes += now_bytes - *own_bytes;
	*own_bytes = now_bytes;
}

void memory_bound_say(struct memory_bound *bound)
{
	if (!bound->refused || bound->said)
		return;
	bound->said = true;
	log_line("stacks take %" PRIu64 " of %" PRIu64
	         " MiB: new ones of the largest processes are counted as lost",
	    bound->held_bytes >> 20, bound->max_bytes >> 20);
}

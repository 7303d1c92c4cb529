/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of a file in memory have been written. Whoever reads another page makes it, and pays for it. */
#ifndef SAMPLER_INTAKE_SPARSE_RUN_H
#define SAMPLER_INTAKE_SPARSE_RUN_H

#include "proto/region.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

/* The last run of pages that were found; zeroed at first. */
struct sparse_run {
	uint64_t start, end;
};

/* Whether the page at that offset has been written (swapped out, it counts as written). If so, *run is the
 * run of written pages that holds it. The owner of the file may give the page back at any time. */
static inline bool sparse_run_has(struct sparse_run *run, int fd, uint64_t offset)
{
	if (offset >= run->start && offset < run->end)
		return true;
	const off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
	if (data != (off_t)offset)
		return false;
	const off_t hole = lseek(fd, data, SEEK_HOLE);
	*run = (struct sparse_run){offset, hole > data ? (uint64_t)hole : offset + REGION_PAGE_BYTES};
	return true;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of a file in memory have been written. Whoever reads another page makes it, and pays for it. */
#ifndef SAMPLER_INTAKE_SPARSE_RUN_H
#define SAMPLER_INTAKE_SPARSE_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* The last run of pages that were found; zeroed at first. */
struct sparse_run {
	uint64_t start, end;
};

/* Whether the page at that offset has been written. If so, *run is the run of written pages that holds it.
 * The owner of the file may give the page back at any time. */
bool sparse_run_has(struct sparse_run *run, int fd, uint64_t offset);

#endif

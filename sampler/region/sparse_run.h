/* SPDX-License-Identifier: Apache-2.0 */
/* What of a file in memory has been written: to read another page there makes it, as the reader's memory. */
#ifndef SAMPLER_REGION_SPARSE_RUN_H
#define SAMPLER_REGION_SPARSE_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* The last run of pages that were found; zeroed at first. */
struct sparse_run {
	uint64_t start, end;
};

/* Whether the page at that offset has been written; then the run ends behind it. Its owner may give it back
 * at any time. */
bool sparse_run_has(struct sparse_run *run, int fd, uint64_t offset);

#endif

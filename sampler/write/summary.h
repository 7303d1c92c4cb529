/* SPDX-License-Identifier: Apache-2.0 */
/* What the summary says of one ended process: a row of the table, and a block of lines if the process is the
 * only one. */
#ifndef SAMPLER_WRITE_SUMMARY_H
#define SAMPLER_WRITE_SUMMARY_H

#include "sampler/write/heap_snapshot.h"
#include "sampler/write/summary_list.h"

/* Fills a row, with its block, from the last snapshot of a process. end: how the process ended, in words.
 * error: 0, or -errno if the profile could not be written. summary_row_fini() frees the row. */
void summary_row_make(
    struct summary_row *row, const struct heap_snapshot *snapshot, const char *end, int error);

#endif

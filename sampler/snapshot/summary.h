/* SPDX-License-Identifier: Apache-2.0 */
/* What the summary says of one process that has ended: its row, and its block of lines if it is alone. */
#ifndef SAMPLER_SNAPSHOT_SUMMARY_H
#define SAMPLER_SNAPSHOT_SUMMARY_H

#include "sampler/snapshot/heap_snapshot.h"
#include "sampler/snapshot/summary_list.h"

#include <stdio.h>

/* Fills a row, its block included, from the snapshot at the end of a process; `end` is how it ended. error:
 * of writing the profile, 0 or -errno. For summary_row_fini(). */
void summary_row_make(
    struct summary_row *row, const struct heap_snapshot *snapshot, const char *end, int error);

/* The block, without the files: lines with a newline each. The row's numbers must have been filled in. */
void summary_print(FILE *out, const struct summary_row *row, const struct heap_snapshot *snapshot);

#endif

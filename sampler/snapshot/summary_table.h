/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the summary: a line for each process that has a row, the largest first, and one for the rest.
 * Columns that do not fit are left out: first pid and name, if the files' names have both, then the errors.
 */
#ifndef SAMPLER_SNAPSHOT_SUMMARY_TABLE_H
#define SAMPLER_SNAPSHOT_SUMMARY_TABLE_H

#include "sampler/snapshot/summary_list.h"

#include <stdio.h>

/* width: columns of each line, 0: no limit; the last column, the profile, is never cut. */
void summary_table_print(FILE *out, const struct summary_list *list, int width);

/* The folder of all the profiles in the table, with a slash at its end, or "": they have none, or not all the
 * same. The length of it in one of them. */
size_t summary_table_folder(const struct summary_list *list, const char **folder);

#endif

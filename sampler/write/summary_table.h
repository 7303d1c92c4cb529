/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the summary: a line for each process that has a row, the largest first, and a line for the
 * rest. If the columns do not fit, pid and name are left out first, provided that the files' names have both,
 * and then the errors.
 */
#ifndef SAMPLER_WRITE_SUMMARY_TABLE_H
#define SAMPLER_WRITE_SUMMARY_TABLE_H

#include "sampler/write/summary_list.h"

#include <stdio.h>

/* width: of the terminal; 0: no limit. The last column, the profile, is never cut. */
void summary_table_print(FILE *out, const struct summary_list *list, int width);

/* Points *folder at the folder that all profiles in the table are in, and returns its length, with the slash
 * at its end. Returns 0 if they have none, or different ones. */
size_t summary_table_folder(const struct summary_list *list, const char **folder);

#endif

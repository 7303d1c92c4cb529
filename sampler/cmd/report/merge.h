/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap merge: several profiles added up into one profile. */
#ifndef SAMPLER_CMD_REPORT_MERGE_H
#define SAMPLER_CMD_REPORT_MERGE_H

struct options;

/* The command. Returns the exit status. */
int merge_run(struct options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap diff BASE NEW: what changed between two profiles, and which changes are larger than the sampling
 * error. */
#ifndef SAMPLER_CMD_REPORT_DIFF_H
#define SAMPLER_CMD_REPORT_DIFF_H

struct options;

/* The command. Returns the exit status. */
int diff_run(struct options *options);

#endif

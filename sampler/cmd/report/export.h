/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap export: a profile in the formats of other tools. */
#ifndef SAMPLER_CMD_REPORT_EXPORT_H
#define SAMPLER_CMD_REPORT_EXPORT_H

struct options;

/* The command. Returns the exit status. */
int export_run(struct options *options);

#endif

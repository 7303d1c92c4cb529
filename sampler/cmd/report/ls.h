/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap ls: which sessions, processes and profiles are in a folder. */
#ifndef SAMPLER_CMD_REPORT_LS_H
#define SAMPLER_CMD_REPORT_LS_H

struct options;

/* The command. Returns the exit status. */
int ls_run(struct options *options);

#endif

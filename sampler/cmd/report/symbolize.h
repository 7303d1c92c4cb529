/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap symbolize: looks up the names that a profile lacks (record --symbols raw), on this machine and now.
 *
 * A file's code is looked up only if the file still has the profile's build id, or if the profile has none.
 * Files are hostile: a child with limits looks up each profile. If that child is killed, another child looks
 * up less.
 */
#ifndef SAMPLER_CMD_REPORT_SYMBOLIZE_H
#define SAMPLER_CMD_REPORT_SYMBOLIZE_H

struct options;

/* The command. Returns the exit status. */
int symbolize_run(struct options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap symbolize: looks up the names that a profile lacks (record --symbols raw), on this machine and now.
 *
 * A file's code is looked up only if the file still has the build id that the profile says; without one in
 * the profile nothing is known of it, and it is looked up if it is there. Files are hostile: each profile has
 * a child of its own, with limits, and if that is killed another one looks up less.
 */
#ifndef SAMPLER_REPORT_SYMBOLIZE_H
#define SAMPLER_REPORT_SYMBOLIZE_H

struct options;

/* The command. Returns the exit status. */
int symbolize_run(struct options *options);

#endif

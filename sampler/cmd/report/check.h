/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap check PROFILE...: is each file a profile that other tools can read? */
#ifndef SAMPLER_CMD_REPORT_CHECK_H
#define SAMPLER_CMD_REPORT_CHECK_H

struct options;

/* The command. Prints a line on standard output for each fault; status 1 if there was one, or if a file
 * cannot be read. */
int check_run(struct options *options);

#endif

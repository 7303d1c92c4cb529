/* SPDX-License-Identifier: Apache-2.0 */
/* `heaptap status [PID | SERVICE]...`: asks the daemon for its list, and shows it. */
#ifndef SAMPLER_CMD_STATUS_STATUS_COMMAND_H
#define SAMPLER_CMD_STATUS_STATUS_COMMAND_H

struct options;

/* Returns the exit status: 0, or 1 if no daemon answers, or if it knows none of the processes that are
 * named. */
int status_command_run(struct options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* `heaptap status [PID | SERVICE]...`: asks the daemon what it does, and shows it. */
#ifndef SAMPLER_STATUS_STATUS_COMMAND_H
#define SAMPLER_STATUS_STATUS_COMMAND_H

struct options;

/* The command. Exit status 0; 1 if no daemon answers, or it knows none of the processes that were named. */
int status_command_run(struct options *options);

#endif

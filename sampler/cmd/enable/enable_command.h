/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap enable` and `heaptap disable`: a drop-in makes a systemd unit load the library, so that the daemon
 * profiles the unit. Both commands may be repeated. An interruption leaves each file as it was, or complete.
 */
#ifndef SAMPLER_CMD_ENABLE_ENABLE_COMMAND_H
#define SAMPLER_CMD_ENABLE_ENABLE_COMMAND_H

struct options;

/* Return the exit status: 0 if everything is in force; 1 if something is not, after a line that says what. */
int enable_command_run(struct options *options);
int disable_command_run(struct options *options);

#endif

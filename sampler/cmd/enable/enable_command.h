/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap enable` and `heaptap disable`: a drop-in lets a systemd unit load the library, so that the daemon
 * profiles it. Both may be repeated. An interruption leaves each file as it was or as it shall be.
 */
#ifndef SAMPLER_CMD_ENABLE_ENABLE_COMMAND_H
#define SAMPLER_CMD_ENABLE_ENABLE_COMMAND_H

struct options;

/* Exit status 0: all of it is in force; 1: something is not, after a line that says what. */
int enable_command_run(struct options *options);
int disable_command_run(struct options *options);

#endif

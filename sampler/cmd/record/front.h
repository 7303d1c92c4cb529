/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front process of `heaptap record`: the process that the user's shell has started.
 *
 * The front forks the sampler into a session of its own, and starts COMMAND with the library preloaded. Then
 * it only stands in for COMMAND: it has the same process group and terminal, passes signals on, stops when
 * COMMAND stops, and returns COMMAND's exit status. It does no profiling. SIGKILL to the front ends COMMAND
 * too (signal_witness.h), while the sampler goes on until the profiles are written. But the front is not
 * COMMAND's parent: see command_parent.h.
 *
 * The sampler is entered as session_run(options, front_fd) (sampler/cmd/record/session.h) in a process with
 *   - its own session, stdin and stdout on /dev/null, stderr as inherited, and no other descriptor than
 *     front_fd;
 *   - SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP and SIGPIPE ignored, SIGCHLD at its default, an
 *     empty mask;
 *   - options->library set.
 * Its return value becomes the sampler's exit status, which is not used.
 */
#ifndef SAMPLER_CMD_RECORD_FRONT_H
#define SAMPLER_CMD_RECORD_FRONT_H

struct options;

/* Runs `heaptap record`; sets options->library. Returns the exit status for main. */
int front_run(struct options *options);

#endif

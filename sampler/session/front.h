/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front process of `heaptap record`: the one the user's shell sees.
 *
 * It forks the sampler into a session of its own, starts COMMAND with the library preloaded, and then only
 * stands in for COMMAND: it has the same process group and terminal, passes signals on, mirrors stops and
 * returns the exit status. It does no profiling itself. It is COMMAND to whoever started it: SIGKILL ends
 * both (signal_witness.h), while the sampler goes on until the profiles are written. But it is not COMMAND's
 * parent: see command_parent.h.
 *
 * The sampler is entered as session_run(options, front_fd) (sampler/session/session.h) in a process with
 *   - its own session, stdin and stdout on /dev/null, stderr as inherited, no other descriptor but
 *     front_fd;
 *   - SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP and SIGPIPE ignored, SIGCHLD at its default, an
 *     empty mask;
 *   - options->library set.
 * Its return value becomes the sampler's exit status, which is not used.
 */
#ifndef SAMPLER_SESSION_FRONT_H
#define SAMPLER_SESSION_FRONT_H

struct options;

/* Runs `heaptap record`; sets options->library. Returns the exit status for main. */
int front_run(struct options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front process of `heaptap record`: the one the user's shell sees.
 *
 * It forks the sampler into a session of its own, starts COMMAND with the library preloaded, and then does
 * nothing but stand in for COMMAND: same process group and terminal, signals passed on, stops mirrored, exit
 * status handed back. It never profiles anything itself, and COMMAND does not depend on it: killing the front
 * leaves COMMAND (and the sampler) running.
 *
 * The sampler is entered as session_run(options, front_fd) (sampler/session/session.h) in a process with
 *   - its own session, stdin and stdout on /dev/null, stderr as the user gave it, no other descriptor but
 *     front_fd;
 *   - SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP and SIGPIPE ignored, SIGCHLD at its default, an
 *     empty mask;
 *   - options->library set.
 * What it returns is the sampler's exit status, which nobody reads.
 */
#ifndef SAMPLER_SESSION_FRONT_H
#define SAMPLER_SESSION_FRONT_H

struct options;

/* Runs `heaptap record`; sets options->library. Returns the exit status for main. */
int front_run(struct options *options);

#endif

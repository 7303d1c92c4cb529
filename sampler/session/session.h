/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler process: a session with a heap, with events, or with both. */
#ifndef SAMPLER_SESSION_SESSION_H
#define SAMPLER_SESSION_SESSION_H

struct options;

/* Runs the sampler of one `heaptap record`, connected to the front process by front_fd
 * (sampler/session/front_message.h); sampler/session/front.h says how it is entered. Returns the exit
 * status. */
int session_run(const struct options *options, int front_fd);

/* `heaptap adopt PID`: continues the books of a target whose sampler has died, until the target ends. Returns
 * the exit status. */
int session_adopt(struct options *options);

/* `record --pid PID,...`: in the foreground, until the processes end, the time is over or a signal stops us
 * (SIGINT, SIGTERM, SIGHUP): then it detaches, and they run on. Returns the exit status. */
int session_attach(struct options *options);

/* `heaptap detach PID`: detaches from a process whose sampler has died. Returns the exit status. */
int session_detach(struct options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that run a sampler of their own: record, adopt and detach. A session samples the heap,
 * events, or both. */
#ifndef SAMPLER_CMD_RECORD_SESSION_H
#define SAMPLER_CMD_RECORD_SESSION_H

struct options;

/* The sampler of `heaptap record COMMAND`. front_fd: a socket to the front process (front_message.h);
 * front.h says how the function is entered. Returns the exit status. */
int session_run(const struct options *options, int front_fd);

/* `heaptap adopt PID`: continues the books of a process whose sampler has died, until the process ends.
 * Returns the exit status. */
int session_adopt(struct options *options);

/* `record --pid PID,...`: runs in the foreground until the processes end, the time is over, or a signal
 * stops it (SIGINT, SIGTERM, SIGHUP). Then it detaches, and the processes run on. Returns the exit status. */
int session_attach(struct options *options);

/* `heaptap detach PID`: detaches from a process whose sampler has died. Returns the exit status. */
int session_detach(struct options *options);

#endif

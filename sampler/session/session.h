/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler process of one `heaptap record`: see sampler/session/front.h for how it is entered. */
#ifndef SAMPLER_SESSION_SESSION_H
#define SAMPLER_SESSION_SESSION_H

struct options;

/* Serves one run, talking to the front process over front_fd (sampler/session/front_message.h). Returns the
 * exit status. */
int session_run(const struct options *options, int front_fd);

/* `heaptap adopt PID`: goes on with the books of a target whose sampler has died, until it ends. Returns the
 * exit status. */
int session_adopt(struct options *options);

#endif

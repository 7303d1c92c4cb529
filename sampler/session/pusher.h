/* SPDX-License-Identifier: Apache-2.0 */
/* The program heaptap-push (folder push/), which speaks HTTP: no other process of heaptap does. */
#ifndef SAMPLER_SESSION_PUSHER_H
#define SAMPLER_SESSION_PUSHER_H

struct options;

/* `heaptap push`: becomes heaptap-push. Returns only if that fails, with the exit status. */
int pusher_run(struct options *options);

#endif

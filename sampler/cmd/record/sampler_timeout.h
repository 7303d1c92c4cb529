/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the front waits, after COMMAND's end, for a sampler that says nothing. A sampler that works sends
 * FRONT_MESSAGE_ALIVE once a second. A sampler that was stopped, or hangs in a file system, sends nothing.
 * Then the user is told so, more and more rarely, and after a minute the front does not wait any longer.
 * Pure.
 *
 * Only the time counts in which the front itself could run: while a whole container is frozen, the sampler
 * cannot speak either. So the silence is the sum of the times between looks, and no such time counts for more
 * than it takes on a busy machine.
 */
#ifndef SAMPLER_CMD_RECORD_SAMPLER_TIMEOUT_H
#define SAMPLER_CMD_RECORD_SAMPLER_TIMEOUT_H

#include <stdint.h>

/* Begun by sampler_timeout_restart(). */
struct sampler_timeout {
	uint64_t looked_ns; /* the last look or restart */
	uint64_t silent_ns; /* for how long the sampler had been silent by then */
	uint64_t told_ns;   /* the same when the user was told last; 0: not told */
};

enum sampler_timeout_state {
	SAMPLER_TIMEOUT_NOT_YET,
	SAMPLER_TIMEOUT_TELL, /* tell the user, and not again until the silence is twice as long */
	SAMPLER_TIMEOUT_OVER,
};

/* The sampler has said something, or the wait for it begins. now_ns, here and below: monotonic. */
void sampler_timeout_restart(struct sampler_timeout *timeout, uint64_t now_ns);

/* The sampler has said nothing: what is to be done? Call it about once a second, or more often. */
enum sampler_timeout_state sampler_timeout_look(struct sampler_timeout *timeout, uint64_t now_ns);

#endif

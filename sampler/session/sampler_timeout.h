/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the front waits after COMMAND's end for a sampler that says nothing. One that works says once a
 * second that it is alive (FRONT_MESSAGE_ALIVE); one that was stopped, or hangs in a file system, says
 * nothing. The user is told, more and more rarely, and after a minute is not held up any longer. Pure.
 *
 * Only time counts in which the front itself was there to hear something: while a whole container is frozen,
 * the sampler cannot speak either. So the silence is the sum of the times between looks, none of which counts
 * for more than it takes on a busy machine.
 */
#ifndef SAMPLER_SESSION_SAMPLER_TIMEOUT_H
#define SAMPLER_SESSION_SAMPLER_TIMEOUT_H

#include <stdint.h>

/* sampler_timeout_restart() begins one. */
struct sampler_timeout {
	uint64_t looked_ns; /* at the last look, or when the sampler said something after it */
	uint64_t silent_ns; /* how long it had been silent by then */
	uint64_t told_ns;   /* how long it had been silent when the user was told last; 0: not told */
};

enum sampler_timeout_state {
	SAMPLER_TIMEOUT_NOT_YET,
	SAMPLER_TIMEOUT_TELL, /* now, and not again until it is twice as long */
	SAMPLER_TIMEOUT_OVER,
};

/* The sampler has said something, or is waited for from now on. now_ns, here and below: monotonic. */
void sampler_timeout_restart(struct sampler_timeout *timeout, uint64_t now_ns);

/* Nothing has come: what is to be done about it? To be asked about once a second, or more often. */
enum sampler_timeout_state sampler_timeout_look(struct sampler_timeout *timeout, uint64_t now_ns);

#endif

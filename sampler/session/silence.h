/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the front waits after COMMAND's end for a sampler that says nothing. One that works says once a
 * second that it is alive (FRONT_MESSAGE_ALIVE); one that was stopped, or hangs in a file system, says
 * nothing. The user is told, more and more rarely, and after a minute is not held up any longer. Pure.
 */
#ifndef SAMPLER_SESSION_SILENCE_H
#define SAMPLER_SESSION_SILENCE_H

#include <stdint.h>

/* Zeroed at first. */
struct silence {
	uint64_t heard_ns; /* when the sampler said something; 0: nobody waits yet */
	uint64_t said_ns;  /* how long it had been silent when the user was told last; 0: not told */
};

enum silence_verdict {
	SILENCE_SHORT,
	SILENCE_TO_TELL, /* now, and not again until it is twice as long */
	SILENCE_TOO_LONG,
};

/* The sampler has said something. now_ns, here and below: monotonic. */
void silence_end(struct silence *silence, uint64_t now_ns);

/* Nothing has come: what is to be done about it? */
enum silence_verdict silence_look(struct silence *silence, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells a profile that a server cannot take from a server that takes none. Pure.
 *
 * When all that came of an entry for long were answers that it may be tried later, another entry is sent
 * right after it, once: the probe. If that is accepted, it is the entry; if not, it is the server, and the
 * entry is tried for as long again. Without an answer (no connection, a time limit) it is always the server.
 */
#ifndef PUSH_POISON_CHECK_H
#define PUSH_POISON_CHECK_H

#include <stdbool.h>
#include <stdint.h>

enum { POISON_CHECK_ATTEMPTS = 5 }; /* at least so many, however short the time */

/* All zero: none. */
struct poison_check {
	uint64_t number; /* of the entry; 0: none */
	uint64_t probe;  /* of the entry that is sent instead; 0: none */
	uint64_t since_ns;
	unsigned int attempts;
};

/* An entry was not accepted, and is not refused. True: a probe is due, if there is one. */
bool poison_check_failed(
    struct poison_check *poison, uint64_t number, bool answered, uint64_t now_ns, uint64_t give_up_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells a profile that a server cannot take from a server that takes none. Pure.
 *
 * A server may answer "try again later" for an entry each time. After a long time of such answers, another
 * entry is sent once: the probe. If the server accepts the probe, the entry is at fault. If not, the server
 * is, and the entry is tried for as long again. If no answer comes (no connection, a time limit), the server
 * is at fault.
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

/* Call this when an entry was neither accepted nor refused. Returns whether to send a probe. */
bool poison_check_failed(
    struct poison_check *poison, uint64_t number, bool answered, uint64_t now_ns, uint64_t give_up_ns);

#endif

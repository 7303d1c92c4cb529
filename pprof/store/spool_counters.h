/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the profiles of a target of `heaptap push` since its spool was made. The spool's file
 * `counters` has it as lines `sent 12`. */
#ifndef PPROF_STORE_SPOOL_COUNTERS_H
#define PPROF_STORE_SPOOL_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

struct spool_counters {
	uint64_t sent;
	uint64_t retried;  /* attempts after which the same profile was tried again */
	uint64_t rejected; /* refused for good, moved to rejected/ */
	uint64_t dropped;  /* never delivered: too old, or no room */
	/* moved to rejected/ after `give-up`: the server could not take it, but took another profile */
	uint64_t given_up;
	/* of a time before a profile of the same process that was taken: the clock was set back */
	uint64_t passed_over;
	/* repeated attempts where the server may have the profile: all was sent, but no answer was read. At
	 * most so many profiles are there twice. */
	uint64_t resent;
	/* how many of the last attempts in a row were refused because we may not send (401, 403, 407), most
	 * likely for the token */
	uint64_t denied;
	uint64_t denied_since_s; /* when the first of these came, as Unix time; 0: none */
	uint64_t sending;        /* the entry that is sent now, or was when we were killed; 0: none */
};

enum { SPOOL_COUNTERS_BYTES = 512 };

/* Returns the length. */
size_t spool_counters_print(const struct spool_counters *counters, char text[SPOOL_COUNTERS_BYTES]);

/* Reads a file that may hold anything. A counter that is not understood is 0. */
void spool_counters_parse(const uint8_t *bytes, size_t length, struct spool_counters *counters);

#endif

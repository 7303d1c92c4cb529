/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the profiles of a target of `heaptap push`, since its spool exists: the file `counters`
 * there, lines `sent 12`. */
#ifndef PPROF_SERVICE_SPOOL_COUNTERS_H
#define PPROF_SERVICE_SPOOL_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

struct spool_counters {
	uint64_t sent;
	uint64_t retried;  /* attempts after which the same was tried again */
	uint64_t rejected; /* refused for good, moved to rejected/ */
	uint64_t dropped;  /* never delivered: too old, or no room */
	/* Moved to rejected/ after `give-up`: the server could not take it, and took another one. */
	uint64_t given_up;
	/* Came with a time before that of one taken already of its process: the clock was set back. */
	uint64_t passed_over;
	/* Attempts repeated although the server may have taken the one before: all of it was sent, and its
	 * answer was never read. So many profiles may be there twice, not more. */
	uint64_t resent;
	/* The last so many attempts were refused because we may not send (401, 403): the token, most likely;
	 * 0: the last that was judged was not. */
	uint64_t denied;
	uint64_t sending; /* number of the entry of which that holds now; 0: none */
};

enum { SPOOL_COUNTERS_BYTES = 512 };

/* Returns the length. */
size_t spool_counters_print(const struct spool_counters *counters, char text[SPOOL_COUNTERS_BYTES]);

/* Of a file that may hold anything: what is not understood is 0. */
void spool_counters_parse(const uint8_t *bytes, size_t length, struct spool_counters *counters);

#endif

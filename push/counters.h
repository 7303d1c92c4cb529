/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the profiles of a target, since its spool exists: the file `counters` there, lines
 * `sent 12`. */
#ifndef PUSH_COUNTERS_H
#define PUSH_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

struct counters {
	uint64_t sent;
	uint64_t retried;  /* attempts after which the same was tried again */
	uint64_t rejected; /* refused for good, moved to rejected/ */
	uint64_t dropped;  /* never delivered: too old, or no room */
};

enum { COUNTERS_BYTES = 256 };

/* Returns the length. */
size_t counters_print(const struct counters *counters, char text[COUNTERS_BYTES]);

/* Of a file that may hold anything: what is not understood is 0. */
void counters_parse(const uint8_t *bytes, size_t length, struct counters *counters);

#endif

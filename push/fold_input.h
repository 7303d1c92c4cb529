/* SPDX-License-Identifier: Apache-2.0 */
/* What fold() is given: a profile, and the limits that it must come within. */
#ifndef PUSH_FOLD_INPUT_H
#define PUSH_FOLD_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

struct fold_limits {
	size_t bytes;   /* of the encoded profile, not compressed */
	size_t samples; /* `[other]` included */
	size_t depth;   /* locations of a stack */
	size_t string_bytes;
	bool
	    drop_numbers; /* labels with numbers are left out: the server does so, and counts samples first */
};

struct fold_input {
	const struct profile *profile;
	const int64_t *values; /* samples by sample types; as since_values() makes them */
	const bool *types;     /* which sample types to send, one entry for each */
	int64_t time_ns, duration_ns;
	const char *snapshot; /* replaces the comment `snapshot: ...`; NULL: it stays */
	const char *comment;  /* one more; NULL: none */
	const struct fold_limits *limits;
};

#endif

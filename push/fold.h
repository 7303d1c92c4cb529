/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a profile that a server takes: no more samples, bytes, frames of a stack or bytes of a string than it
 * allows, and exactly the same totals.
 *
 * Samples are ranked by their largest share of any sample type; those that do not fit are added up under one
 * frame `[other]`, without labels. A stack that is too deep keeps both of its ends around a frame
 * `[frames cut]`; a string that is too long keeps its end, as Pyroscope would cut it.
 */
#ifndef PUSH_FOLD_H
#define PUSH_FOLD_H

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

struct folded {
	uint8_t *bytes; /* encoded, not compressed */
	size_t length;
	size_t samples;     /* kept, `[other]` not counted */
	size_t other;       /* in `[other]` */
	double other_share; /* of their largest sample type, 0 to 1 */
	size_t stacks_cut, strings_cut;
};

/* 0, or -ENOMEM, -EOVERFLOW; -EFBIG if not even `[other]` alone fits. folded_fini() after 0. */
int fold(const struct fold_input *input, struct folded *folded);
void folded_fini(struct folded *folded);

#endif

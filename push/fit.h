/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts a profile to the limits of a server: samples, bytes, frames of a stack, bytes of a string. The totals
 * stay exactly the same.
 *
 * Samples are ranked by their largest share of any sample type. Those that do not fit are added up under one
 * frame `[other]`, without labels. A stack that is too deep keeps both of its ends, with a frame
 * `[frames cut]` between them. A string that is too long keeps its end, as Pyroscope would cut it.
 */
#ifndef PUSH_FIT_H
#define PUSH_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

struct fit_limits {
	size_t bytes;   /* of the encoded profile, not compressed */
	size_t samples; /* `[other]` included */
	size_t depth;   /* locations of a stack */
	size_t string_bytes;
	bool
	    drop_numbers; /* labels with numbers are left out: the server does so, and counts samples first */
};

struct fit_input {
	const struct profile *profile;
	const int64_t *values; /* samples by sample types; as since_values() makes them */
	const bool *types;     /* which sample types to send, one entry for each */
	int64_t time_ns, duration_ns;
	const char *snapshot; /* replaces the comment `snapshot: ...`; NULL: it stays */
	const char *comment;  /* one more; NULL: none */
	const struct fit_limits *limits;
};

struct fitted {
	uint8_t *bytes; /* encoded, not compressed */
	size_t length;
	size_t samples;     /* kept, `[other]` not counted */
	size_t other;       /* in `[other]` */
	double other_share; /* of their largest sample type, 0 to 1 */
	size_t stacks_cut, strings_cut;
};

/* 0, or -ENOMEM, -EOVERFLOW; -EFBIG if not even `[other]` alone fits. fitted_fini() after 0. */
int fit(const struct fit_input *input, struct fitted *fitted);
void fitted_fini(struct fitted *fitted);

#endif

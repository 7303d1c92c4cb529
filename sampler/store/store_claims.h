/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths that were given out lately, so that none is given out twice. Paths have their second in them,
 * so only those of the last seconds are kept: as hashes, and two with the same one cost a needless number
 * in a name.
 */
#ifndef SAMPLER_STORE_STORE_CLAIMS_H
#define SAMPLER_STORE_STORE_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is empty. */
struct store_claims {
	struct store_claimed {
		uint64_t hash;
		int64_t time_s;
	} * paths;
	size_t count, room;
};

void store_claims_fini(struct store_claims *claims);

/* True, and kept: it was not given out before. Without memory it is true as well. */
bool store_claims_take(struct store_claims *claims, const char *path, int64_t time_s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths that were given out lately, so that no path is given out twice. A path has its second in it, so
 * only the paths of the last seconds are kept, as hashes. If two paths have the same hash, the second one
 * gets a needless number in its name.
 */
#ifndef PPROF_STORE_STORE_CLAIMS_H
#define PPROF_STORE_STORE_CLAIMS_H

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

/* Keeps the path. False if it was given out before. True without memory. */
bool store_claims_take(struct store_claims *claims, const char *path, int64_t time_s);

#endif

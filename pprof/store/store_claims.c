/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_claims.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"

#include <stdlib.h>
#include <string.h>

enum { LATELY_S = 60, FORGET_COUNT = 1024 };

void store_claims_fini(struct store_claims *claims)
{
	free(claims->paths);
	*claims = (struct store_claims){0};
}

/* A path that is claimed with its time is not claimed again a minute later. */
static void forget(struct store_claims *claims, int64_t time_s)
{
	size_t kept = 0;

	for (size_t i = 0; i < claims->count; i++)
		if (claims->paths[i].time_s > time_s - LATELY_S)
			claims->paths[kept++] = claims->paths[i];
	claims->count = kept;
}

bool store_claims_take(struct store_claims *claims, const char *path, int64_t time_s)
{
	uint64_t hash = index_mix_bytes(index_seed(), path, strlen(path));

	for (size_t i = claims->count; i-- > 0;)
		if (claims->paths[i].hash == hash)
			return false;
	if (claims->count >= FORGET_COUNT && claims->count % FORGET_COUNT == 0)
		forget(claims, time_s);
	if (!array_reserve(&claims->paths, &claims->room, claims->count + 1, sizeof(*claims->paths)))
		claims->paths[claims->count++] = (struct store_claimed){hash, time_s};
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/chance.h"

#include <math.h>

static uint64_t state = 1;

void chance_seed(uint64_t seed)
{
	state = seed;
}

double chance_uniform(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ull; /* splitmix64 (Steele, Lea and Flood, OOPSLA 2014) */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

double chance_exponential(double mean)
{
	return -mean * log(chance_uniform());
}

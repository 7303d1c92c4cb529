/* SPDX-License-Identifier: Apache-2.0 */
/* Chance for simulations: the same numbers each time, so that two runs can be compared. Of one thread. */
#ifndef BENCH_CHANCE_H
#define BENCH_CHANCE_H

#include <stdint.h>

/* Begins the numbers again; another seed gives others. */
void chance_seed(uint64_t seed);

/* Between 0 and 1, neither of them. */
double chance_uniform(void);

double chance_exponential(double mean);

#endif

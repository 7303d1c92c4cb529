/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work that one process' stacks may cause by look-ups of new rows: a bucket that time fills again.
 *
 * A row is looked up once for each address, and an address is a word of a stack that the process wrote, in
 * a file that it may have made: thousands of look-ups of a millisecond each would keep everybody's sampler
 * from its other work. Each process pays for its own stacks, so what one spends is missing to no other, and
 * rows that are known already cost nothing.
 *
 * A unit is a byte of call frame instructions: 2 to 5 ns where it was measured.
 */
#ifndef SAMPLER_UNWIND_CFI_BUDGET_H
#define SAMPLER_UNWIND_CFI_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* A compiler's first 100,000 rows take some 40 million. */
	CFI_BUDGET_MAX = 64 << 20,
	CFI_BUDGET_PER_US = 32,
};

/* All zero is a full one. */
struct cfi_budget {
	int64_t left;       /* a look-up is begun while this is positive, and may make it negative */
	uint64_t filled_ns; /* of CLOCK_MONOTONIC, until when */
};

/* May one more row be looked up now? */
bool cfi_budget_allows(struct cfi_budget *budget);
void cfi_budget_spend(struct cfi_budget *budget, uint64_t units);

#endif

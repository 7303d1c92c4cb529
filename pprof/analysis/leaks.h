/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of what is in use, largest first: of a profile that was written when its program ended, the leaks.
 * */
#ifndef PPROF_ANALYSIS_LEAKS_H
#define PPROF_ANALYSIS_LEAKS_H

#include "pprof/analysis/suppressions.h"

struct leak {
	uint32_t row; /* of the traces */
	int64_t bytes, objects;
};

struct leaks {
	struct leak *leaks;
	size_t count;
	int64_t bytes, objects, suppressed_bytes;
	size_t suppressed;
	double variance; /* of bytes */
};

/* suppressions: NULL none. 0 or -ENOMEM; the caller ends it with leaks_fini() in both cases. */
int leaks_find(struct leaks *leaks, const struct traces *t, size_t column, struct suppressions *suppressions);
void leaks_fini(struct leaks *leaks);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The thread and the age of a sample's blocks, as names: by these the rows of one stack may be kept apart. */
#ifndef PPROF_ANALYSIS_SPLIT_H
#define PPROF_ANALYSIS_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern;
struct profile;

struct split {
	uint32_t thread, age; /* numbers of strings; 0: the sample does not tell */
};

/* thread: the name of its thread, NULL unknown. anonymize: threads get hashes for names. 0, -ENOMEM or
 * -EOVERFLOW. */
int split_make(struct split *split, struct intern *strings, const struct profile *profile, size_t sample,
    const char *thread, bool anonymize);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are collected from several profiles. A key has the name that the newest profile gives it. The
 * keys are threads (thread_names.h), or pieces of code that was made at run time (code_names.h).
 */
#ifndef PPROF_ANALYSIS_LATE_NAMES_H
#define PPROF_ANALYSIS_LATE_NAMES_H

#include "pprof/table/index.h"
#include "pprof/table/intern.h"

#include <stddef.h>
#include <stdint.h>

struct late_names_entry {
	uint64_t key; /* a hash */
	int64_t time_ns;
	uint32_t name; /* in `names` */
};

struct late_names {
	struct index index;
	struct intern names;
	struct late_names_entry *entries;
	size_t capacity;
	uint32_t count;
};

/* All zero knows none. */
void late_names_fini(struct late_names *names);
size_t late_names_bytes(const struct late_names *names);

/* Adds a name from a profile of that time, in place of the name from an older profile. 0, -ENOMEM or
 * -EOVERFLOW. */
int late_names_learn(struct late_names *names, uint64_t key, const char *name, int64_t time_ns);

/* NULL if none was learned. Valid until late_names_fini(). */
const char *late_names_find(const struct late_names *names, uint64_t key);

#endif

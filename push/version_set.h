/* SPDX-License-Identifier: Apache-2.0 */
/* A set of numbers: the versions of files that have been looked at. */
#ifndef PUSH_VERSION_SET_H
#define PUSH_VERSION_SET_H

#include "pprof/table/index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is empty. */
struct version_set {
	struct index index;
	uint64_t *versions; /* of ids 1..count */
	size_t room;
	uint32_t count;
};

void version_set_fini(struct version_set *set);
bool version_set_has(const struct version_set *set, uint64_t version);

/* Without memory a number is not added: its file is looked at again later. */
void version_set_add(struct version_set *set, uint64_t version);

#endif

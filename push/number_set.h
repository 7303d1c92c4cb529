/* SPDX-License-Identifier: Apache-2.0 */
/* A set of numbers, such as the versions of files that were looked at. */
#ifndef PUSH_NUMBER_SET_H
#define PUSH_NUMBER_SET_H

#include "pprof/table/index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is empty. */
struct number_set {
	struct index index;
	uint64_t *numbers; /* of ids 1..count */
	size_t room;
	uint32_t count;
};

void number_set_fini(struct number_set *set);
bool number_set_has(const struct number_set *set, uint64_t number);

/* Adds nothing if there is no memory. */
void number_set_add(struct number_set *set, uint64_t number);

#endif

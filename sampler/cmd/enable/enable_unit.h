/* SPDX-License-Identifier: Apache-2.0 */
/* Writes, removes and examines our drop-in of a unit. Each function prints what it did, or what is wrong. */
#ifndef SAMPLER_CMD_ENABLE_ENABLE_UNIT_H
#define SAMPLER_CMD_ENABLE_ENABLE_UNIT_H

#include "sampler/cmd/enable/enable_library.h"
#include "sampler/cmd/enable/root_folder.h"

#include <stdbool.h>
#include <stddef.h>

/* What was done to a unit. */
enum enable_unit_result {
	ENABLE_UNIT_DONE,
	ENABLE_UNIT_ALREADY, /* nothing had to be done */
	ENABLE_UNIT_FAILED,
};

/* library->path is not NULL. */
enum enable_unit_result enable_unit_add(
    const struct root_folder *root, const char *word, const struct enable_library *library);

/* If the unit is missing, `word` is taken for its name. */
enum enable_unit_result enable_unit_remove(const struct root_folder *root, const char *word);

/* Calls `visit` for each unit that has our drop-in, in the order of the names. Returns 0 or -errno. */
int enable_unit_each(
    const struct root_folder *root, void (*visit)(void *context, const char *unit), void *context);

/* Is the drop-in that is there in force? If not, `reason` says what overrides it. */
bool enable_unit_is_in_force(
    const struct root_folder *root, const char *unit, const char *library, char *reason, size_t reason_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which file is the library that units are made to load, and is that file safe? */
#ifndef SAMPLER_CMD_ENABLE_ENABLE_LIBRARY_H
#define SAMPLER_CMD_ENABLE_ENABLE_LIBRARY_H

#include "sampler/cmd/enable/root_folder.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct enable_library {
	char wanted[PATH_MAX]; /* the path that should be there, in the root */
	char usual[PATH_MAX];  /* where this heaptap was installed */
	const char *path;      /* one of them, which is there; NULL if none is */
};

/* given: the only path that may be written down; NULL: the path of this heaptap's library. */
void enable_library_find(struct enable_library *library, const struct root_folder *root, const char *given);

/*
 * Could anybody but root replace the machine's file, and so run code in every program that loads it? Looks
 * at the file, at each folder above it and at each link on the way to it. Returns 0, or -EPERM with `reason`.
 */
int enable_library_check(const char *path, char *reason, size_t reason_bytes);

#endif

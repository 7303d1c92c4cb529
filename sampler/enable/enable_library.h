/* SPDX-License-Identifier: Apache-2.0 */
/* The library that programs are made to load: which path of it is written down, and is it safe there? */
#ifndef SAMPLER_ENABLE_ENABLE_LIBRARY_H
#define SAMPLER_ENABLE_ENABLE_LIBRARY_H

#include "sampler/enable/root_folder.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { ENABLE_LIBRARIES = 3 };

struct enable_library {
	char paths[ENABLE_LIBRARIES]
	          [PATH_MAX]; /* all that enable may have written, here or by another installation */
	size_t count;
	const char *path;   /* the one in the root that is to be written; NULL: it is not there */
	const char *wanted; /* the one that should be there */
};

/* given: no other is to be written; NULL: the one of this heaptap. */
void enable_library_find(struct enable_library *library, const struct root_folder *root, const char *given);

/*
 * Could anybody but root replace the machine's file, and so run code in every program that loads it? Looks
 * at the file and at the folders above it. 0, or -EPERM with `reason`.
 */
int enable_library_check(const char *path, char *reason, size_t reason_bytes);

#endif

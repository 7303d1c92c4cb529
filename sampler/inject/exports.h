/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that an object in a process exports. They are read from the process' own memory: the file at
 * the object's path may be another one. */
#ifndef SAMPLER_INJECT_EXPORTS_H
#define SAMPLER_INJECT_EXPORTS_H

#include "sampler/inject/address_space.h"

struct export
{
	const char *name; /* in exports->strings */
	uint64_t start, end;
};

struct exports {
	struct export *list; /* by address */
	size_t count;
	char *strings;
	uint64_t low, high; /* of the object's segments */
};

/* base: the address of the object's first page. Returns 0, -ENOEXEC or -errno. Call exports_free in all
 * cases. */
int exports_read(struct exports *exports, const struct address_space *space, uint64_t base);
void exports_free(struct exports *exports);

/* The address of a function, or 0 if it is not exported. */
uint64_t exports_address(const struct exports *exports, const char *name);

/* The function that contains an address, or NULL. Any of them if several functions have the same range. */
const struct export *exports_at(const struct exports *exports, uint64_t address);

#endif

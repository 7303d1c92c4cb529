/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that an object in a process exports, read from the process' own memory: what is mapped there
 * counts, and not the file that its path leads to. */
#ifndef SAMPLER_ATTACH_EXPORTS_H
#define SAMPLER_ATTACH_EXPORTS_H

#include "sampler/attach/address_space.h"

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

/* base: where the object's first page is. Returns 0, -ENOEXEC or -errno; exports_free in both cases. */
int exports_read(struct exports *exports, const struct address_space *space, uint64_t base);
void exports_free(struct exports *exports);

/* 0: it is not exported. */
uint64_t exports_address(const struct exports *exports, const char *name);

/* The function that an address is in, or NULL; where several have the range, any of them. */
const struct export *exports_at(const struct exports *exports, uint64_t address);

#endif

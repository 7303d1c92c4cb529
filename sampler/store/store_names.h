/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose names are in the store. What a process calls itself costs nothing, while each name is a folder, and
 * has its share of the budget where that is short: so those who choose names may bring in so many each.
 *
 * A name is its first owner's, until no file was named so for long enough. Kept in memory, as hashes: names
 * that a daemon finds in the store when it starts are nobody's until a file is named so again.
 */
#ifndef SAMPLER_STORE_STORE_NAMES_H
#define SAMPLER_STORE_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is empty. */
struct store_names {
	struct store_named {
		uint64_t name, owner;
		int64_t time_s; /* of the last file */
	} * rows;
	size_t count, room;
};

struct store_names_limits {
	size_t most;    /* names of an owner */
	int64_t keep_s; /* so long after its last file a name counts */
};

void store_names_fini(struct store_names *names);

/* Whether a file of now may bear that name. false: its owner has brought in as many as he may, or there is
 * no memory. */
bool store_names_take(struct store_names *names, const struct store_names_limits *limits, const char *name,
    const char *owner, int64_t time_s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which owner a service's name in the store belongs to. A process chooses its name for free, but each name is
 * a folder and has a share of the budget. So each owner may bring in only so many names.
 *
 * A name belongs to its first owner until no file was named so for long enough. Names are kept in memory, as
 * hashes. A name that a daemon finds in the store when it starts belongs to nobody until a file is named so.
 */
#ifndef PPROF_STORE_STORE_NAMES_H
#define PPROF_STORE_STORE_NAMES_H

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
	int64_t keep_s; /* how long a name counts after its last file */
};

void store_names_fini(struct store_names *names);

/* May a file of now have that name? False if the owner has brought in as many names as he may, or if there is
 * no memory. */
bool store_names_take(struct store_names *names, const struct store_names_limits *limits, const char *name,
    const char *owner, int64_t time_s);

#endif

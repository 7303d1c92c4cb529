/* SPDX-License-Identifier: Apache-2.0 */
/* Names in the spools of `heaptap push`. Each target has a folder. The names of its files say all that is
 * needed to order and count the files. Pure. */
#ifndef PPROF_STORE_SPOOL_NAME_H
#define PPROF_STORE_SPOOL_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spool_entry {
	uint64_t number;  /* of arrival, from 1: the smallest is sent first */
	int64_t time_ns;  /* of the profile */
	uint64_t process; /* of push/delivery.h */
	bool last;        /* the process has ended: no profile of it follows */
	uint64_t bytes;   /* of the file; not part of the name */
};

enum { SPOOL_NAME_BYTES = 80, SPOOL_NAME_TARGET_BYTES = 128 };

/* Can a target have that name? It has letters, digits, '.', '_' and '-', and does not begin with '.'. */
bool spool_name_is_target(const char *name);

/* "00000000000000000042-01795360871703950382-4aa21527451f2630-s.pb.gz"; e instead of s for the last. */
void spool_name_print(const struct spool_entry *entry, char name[SPOOL_NAME_BYTES]);

/* False for any other name. Leaves entry->bytes as it is. */
bool spool_name_parse(const char *name, struct spool_entry *entry);

#endif

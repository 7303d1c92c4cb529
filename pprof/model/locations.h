/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locations of a profile: each distinct (mapping, address, lines) once, with the lines of all in one
 * array.
 */
#ifndef PPROF_MODEL_LOCATIONS_H
#define PPROF_MODEL_LOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/model/profile_location.h"
#include "pprof/table/index.h"

struct locations_row {
	uint64_t address;
	size_t line; /* first one in lines */
	uint32_t mapping, line_count;
	bool folded;
};

struct locations {
	struct index index;
	struct locations_row *rows; /* of ids 1..count */
	size_t row_capacity;
	uint32_t count;
	struct profile_line *lines;
	size_t line_capacity, line_count;
};

/* All zero is empty. */
void locations_fini(struct locations *l);

/* Memory that they take. */
static inline size_t locations_bytes(const struct locations *l)
{
	return index_bytes(&l->index) + l->row_capacity * sizeof(*l->rows) +
	    l->line_capacity * sizeof(*l->lines);
}

/* Gives a location lines, in place of those it has. The index does not know it by them: nothing is added any
 * more after that. 0, -ENOMEM or -EOVERFLOW. */
int locations_name(struct locations *l, uint32_t id, const struct profile_line *lines, size_t count);

/* 0 with the id, the old one for a location already there, in *id; or -ENOMEM, -EOVERFLOW. */
int locations_add(struct locations *l, const struct profile_location *location, uint32_t *id);

#endif

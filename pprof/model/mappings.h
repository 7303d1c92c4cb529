/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of a profile: each distinct (addresses, file offset, file name, build id) once. A mapping
 * that is added again keeps its first flags. */
#ifndef PPROF_MODEL_MAPPINGS_H
#define PPROF_MODEL_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

#include "pprof/table/index.h"

/* Strings are numbers in the profile's string table. */
struct mappings_row {
	uint64_t start, limit, file_offset;
	uint32_t filename, build_id;
	unsigned int flags; /* enum profile_mapping_flags */
};

struct mappings {
	struct index index;
	struct mappings_row *rows; /* of ids 1..count */
	size_t row_capacity;
	uint32_t count;
};

/* All zero is empty. */
void mappings_fini(struct mappings *m);

/* Memory that they take. */
static inline size_t mappings_bytes(const struct mappings *m)
{
	return index_bytes(&m->index) + m->row_capacity * sizeof(*m->rows);
}

/* 0 with the id, the old one for a mapping already there, in *id; or -ENOMEM, -EOVERFLOW. */
int mappings_add(struct mappings *m, const struct mappings_row *row, uint32_t *id);

#endif

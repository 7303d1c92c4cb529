/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a profile: each distinct (names, file, first line) once. */
#ifndef PPROF_MODEL_FUNCTIONS_H
#define PPROF_MODEL_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "pprof/table/index.h"

/* Strings are numbers in the profile's string table. */
struct functions_row {
	uint32_t name, system_name, filename;
	int64_t start_line;
};

struct functions {
	struct index index;
	struct functions_row *rows; /* of ids 1..count */
	size_t row_capacity;
	uint32_t count;
};

/* All zero is empty. */
void functions_fini(struct functions *f);

/* Memory that they take. */
static inline size_t functions_bytes(const struct functions *f)
{
	return index_bytes(&f->index) + f->row_capacity * sizeof(*f->rows);
}

/* 0 with the id, the old one for a function already there, in *id; or -ENOMEM, -EOVERFLOW. */
int functions_add(struct functions *f, const struct functions_row *row, uint32_t *id);

#endif

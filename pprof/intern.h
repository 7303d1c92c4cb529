/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A string table: each distinct string once, numbered in the order of arrival. Number 0 is the empty string,
 * as in profile.proto.
 *
 * What goes in is bytes; what is kept is valid UTF-8 without NUL (utf8.h), terminated by one. Strings do not
 * move.
 */
#ifndef PPROF_INTERN_H
#define PPROF_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "pprof/index.h"

struct intern_block;

struct intern {
	struct index index;
	const char **strings; /* of 1..count; strings[0] belongs to number 1 */
	size_t capacity;
	uint32_t count;
	struct intern_block *blocks;
	size_t block_bytes; /* of all of them */
};

/* All zero is an empty table. */
void intern_fini(struct intern *in);

/* 0 with the number in *number, or -ENOMEM, -EOVERFLOW. */
int intern_add(struct intern *in, const void *bytes, size_t len, uint32_t *number);

/* Memory that it takes. */
static inline size_t intern_bytes(const struct intern *in)
{
	return in->block_bytes + in->capacity * sizeof(*in->strings) + index_bytes(&in->index);
}

static inline const char *intern_at(const struct intern *in, uint32_t number)
{
	return number ? in->strings[number - 1] : "";
}

#endif

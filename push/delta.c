/* SPDX-License-Identifier: Apache-2.0 */
#include "push/delta.h"

#include "pprof/profile/origin.h"
#include "pprof/profile/profile.h"
#include "pprof/table/array.h"
#include "push/stack_key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The file: this header, then the rows, each a key and as many values as there are types. Numbers as
 * this machine has them: a spool does not travel. */
struct header {
	char magic[8];
	uint64_t checksum; /* stack_key_mix() of all that follows */
	int64_t time_ns;
	uint32_t type_count, unknown;
	uint64_t count;
	char types[DELTA_TYPES_MAX][DELTA_TYPE_BYTES];
};

_Static_assert(sizeof(struct header) == DELTA_ENDED_BYTES, "a table without rows is the header alone");

static const char magic[8] = "htdelta1";

void delta_table_fini(struct delta_table *table)
{
	free(table->rows);
	*table = (struct delta_table){0};
}

bool delta_is_total(const struct origin *origin, const char *type)
{
	if (origin->kind != ORIGIN_LIVE)
		return false;
	return *origin->event || strncmp(type, "alloc_", 6) == 0;
}

/* Columns of the profile that are totals, as many as fit. */
static size_t columns_of(
    const struct profile *profile, const struct origin *origin, size_t columns[DELTA_TYPES_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < profile_sample_type_count(profile) && count < DELTA_TYPES_MAX; i++) {
		const char *type = profile_sample_type(profile, i).type;

		if (delta_is_total(origin, type) && strlen(type) < DELTA_TYPE_BYTES)
			columns[count++] = i;
	}
	return count;
}

static int compare_rows(const void *a, const void *b)
{
	uint64_t x = ((const struct delta_row *)a)->key, y = ((const struct delta_row *)b)->key;

	return x < y ? -1 : x > y;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

/* Sorts, and adds up rows of one key. */
static void settle(struct delta_table *table)
{
	size_t kept = 0;

	if (table->count)
		qsort(table->rows, table->count, sizeof(*table->rows), compare_rows);
	for (size_t i = 0; i < table->count; i++) {
		if (!kept || table->rows[kept - 1].key != table->rows[i].key) {
			table->rows[kept++] = table->rows[i];
			continue;
		}
		for (size_t t = 0; t < table->type_count; t++)
			table->rows[kept - 1].values[t] =
			    add_saturating(table->rows[kept - 1].values[t], table->rows[i].values[t]);
	}
	table->count = kept;
}

int delta_table_make(struct delta_table *table, const struct profile *profile, const struct origin *origin)
{
	size_t columns[DELTA_TYPES_MAX], samples = profile_sample_count(profile);
	struct stack_keys keys;

	*table = (struct delta_table){.time_ns = profile_time_ns(profile)};
	table->type_count = columns_of(profile, origin, columns);
	for (size_t t = 0; t < table->type_count; t++)
		strcpy(table->types[t], profile_sample_type(profile, columns[t]).type);
	if (!table->type_count)
		return 0;
	table->rows = malloc((samples + 1) * sizeof(*table->rows));
	if (!table->rows || stack_keys_init(&keys, profile)) {
		delta_table_fini(table);
		return -ENOMEM;
	}
	for (size_t i = 0; i < samples; i++) {
		struct profile_sample sample = profile_sample(profile, i);
		struct delta_row row = {0};
		int64_t any = 0;

		for (size_t t = 0; t < table->type_count; t++)
			any |= row.values[t] = sample.values[columns[t]];
		if (!any)
			continue;
		row.key = stack_key_lasting(&keys, i);
		table->rows[table->count++] = row;
	}
	stack_keys_fini(&keys);
	settle(table);
	return 0;
}

/* What is left to take away from samples with this key, one after the other. */
static int64_t take(int64_t value, int64_t *left)
{
	int64_t taken = *left < value ? *left : value;

	if (taken <= 0)
		return value;
	*left -= taken;
	return value - taken;
}

static struct delta_row *find(struct delta_row *rows, size_t count, uint64_t key)
{
	size_t at = ARRAY_LOWER_BOUND(rows, count, key, key);

	return at < count && rows[at].key == key ? &rows[at] : NULL;
}

/* values: samples by types. left: a copy of base's rows, used up on the way. */
static int subtract(const struct profile *profile, const struct delta_table *base, struct delta_row *left,
    const size_t *columns, size_t column_count, int64_t *values)
{
	size_t types = profile_sample_type_count(profile);
	struct stack_keys keys;

	if (stack_keys_init(&keys, profile))
		return -ENOMEM;
	for (size_t i = 0; i < profile_sample_count(profile); i++) {
		struct delta_row *row = find(left, base->count, stack_key_lasting(&keys, i));

		for (size_t c = 0; row && c < column_count; c++)
			for (size_t t = 0; t < base->type_count; t++)
				if (strcmp(base->types[t], profile_sample_type(profile, columns[c]).type) ==
				    0)
					values[i * types + columns[c]] =
					    take(values[i * types + columns[c]], &row->values[t]);
	}
	stack_keys_fini(&keys);
	return 0;
}

int64_t *delta_values(const struct profile *profile, const struct origin *origin,
    const struct delta_table *base, int64_t *fallen)
{
	size_t types = profile_sample_type_count(profile), samples = profile_sample_count(profile);
	size_t columns[DELTA_TYPES_MAX], column_count = columns_of(profile, origin, columns);
	int64_t *values = calloc(samples * types + 1, sizeof(*values));
	struct delta_row *left = calloc(base->count + 1, sizeof(*left));

	*fallen = 0;
	for (size_t i = 0; values && i < samples; i++)
		memcpy(values + i * types, profile_sample(profile, i).values, types * sizeof(*values));
	for (size_t i = 0; values && base->unknown && i < samples; i++)
		for (size_t c = 0; c < column_count; c++)
			values[i * types + columns[c]] = 0;
	if (left && base->count)
		memcpy(left, base->rows, base->count * sizeof(*left));
	if (!values || !left ||
	    (base->count && column_count && subtract(profile, base, left, columns, column_count, values))) {
		free(values);
		free(left);
		return NULL;
	}
	for (size_t i = 0; i < base->count; i++)
		for (size_t t = 0; t < base->type_count; t++)
			*fallen = add_saturating(*fallen, left[i].values[t] > 0 ? left[i].values[t] : 0);
	free(left);
	return values;
}

/* ---- the file */

static size_t row_bytes(size_t types)
{
	return sizeof(uint64_t) + types * sizeof(int64_t);
}

int delta_encode(const struct delta_table *table, uint8_t **bytes, size_t *length)
{
	struct header header = {.time_ns = table->time_ns,
	    .type_count = (uint32_t)table->type_count,
	    .unknown = table->unknown,
	    .count = table->count};
	uint8_t *at;

	*length = sizeof(header) + table->count * row_bytes(table->type_count);
	*bytes = malloc(*length);
	if (!*bytes)
		return -ENOMEM;
	memcpy(header.types, table->types, sizeof(header.types));
	memcpy(header.magic, magic, sizeof(magic));
	at = *bytes + sizeof(header);
	for (size_t i = 0; i < table->count; i++) {
		memcpy(at, &table->rows[i].key, sizeof(uint64_t));
		memcpy(at + sizeof(uint64_t), table->rows[i].values, table->type_count * sizeof(int64_t));
		at += row_bytes(table->type_count);
	}
	memcpy(*bytes, &header, sizeof(header));
	header.checksum = stack_key_mix(
	    0, *bytes + offsetof(struct header, time_ns), *length - offsetof(struct header, time_ns));
	memcpy(*bytes, &header, sizeof(header));
	return 0;
}

static int rows_decode(const uint8_t *at, struct delta_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		struct delta_row *row = &table->rows[i];

		memcpy(&row->key, at, sizeof(uint64_t));
		memcpy(row->values, at + sizeof(uint64_t), table->type_count * sizeof(int64_t));
		at += row_bytes(table->type_count);
		if (i && row->key <= table->rows[i - 1].key)
			return -EBADMSG;
	}
	return 0;
}

int delta_decode(const uint8_t *bytes, size_t length, struct delta_table *table)
{
	struct header header;
	int err;

	*table = (struct delta_table){0};
	if (length < sizeof(header))
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	if (memcmp(header.magic, magic, sizeof(magic)) != 0 || header.type_count > DELTA_TYPES_MAX ||
	    (length - sizeof(header)) / row_bytes(header.type_count) != header.count ||
	    (length - sizeof(header)) % row_bytes(header.type_count) != 0 ||
	    header.checksum !=
	        stack_key_mix(
	            0, bytes + offsetof(struct header, time_ns), length - offsetof(struct header, time_ns)))
		return -EBADMSG;
	for (size_t t = 0; t < DELTA_TYPES_MAX; t++)
		if (!memchr(header.types[t], '\0', DELTA_TYPE_BYTES))
			return -EBADMSG;
	table->time_ns = header.time_ns;
	table->unknown = header.unknown != 0;
	table->type_count = header.type_count;
	table->count = (size_t)header.count;
	memcpy(table->types, header.types, sizeof(table->types));
	table->rows = calloc(table->count + 1, sizeof(*table->rows));
	err = table->rows ? rows_decode(bytes + sizeof(header), table) : -ENOMEM;
	if (err)
		delta_table_fini(table);
	return err;
}

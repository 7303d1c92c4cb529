/* SPDX-License-Identifier: Apache-2.0 */
#include "push/delta.h"

#include "pprof/profile/origin.h"
#include "pprof/profile/profile.h"
#include "pprof/profile/sample_types.h"
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
	return *origin->event || sample_type_is_total(type);
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

/* What is subtracted, and from what. */
struct subtraction {
	const struct profile *profile;
	const struct delta_table *base;
	struct delta_row *left; /* a copy of base's rows, used up on the way */
	const size_t *columns;  /* those that are totals */
	size_t column_count, types;
	int64_t *values; /* samples by types */
	bool *known;     /* is the sample's stack in base? */
};

/* The number of a column's type in base; base->type_count: it has none. */
static size_t type_in_base(const struct subtraction *s, size_t column)
{
	const char *name = profile_sample_type(s->profile, column).type;
	size_t t = 0;

	while (t < s->base->type_count && strcmp(s->base->types[t], name) != 0)
		t++;
	return t;
}

static int subtract(struct subtraction *s)
{
	struct stack_keys keys;

	if (stack_keys_init(&keys, s->profile))
		return -ENOMEM;
	for (size_t i = 0; i < profile_sample_count(s->profile); i++) {
		struct delta_row *row = find(s->left, s->base->count, stack_key_lasting(&keys, i));

		s->known[i] = row != NULL;
		for (size_t c = 0; row && c < s->column_count; c++) {
			int64_t *value = &s->values[i * s->types + s->columns[c]];
			size_t t = type_in_base(s, s->columns[c]);

			if (t < s->base->type_count)
				*value = take(*value, &row->values[t]);
		}
	}
	stack_keys_fini(&keys);
	return 0;
}

/* Is its first frame one of ours that stands for others, `[lost stack]`? */
static bool is_nameless(const struct profile *profile, size_t index)
{
	struct profile_sample sample = profile_sample(profile, index);
	uint32_t mapping = sample.depth ? profile_location(profile, sample.locations[0]).mapping : 0;

	return mapping && strcmp(profile_mapping(profile, mapping).filename, "[heaptap]") == 0;
}

/* Takes what is left of a type in base from samples, of one kind after the other. */
static void take_fallen(struct subtraction *s, size_t column, int64_t fallen)
{
	enum { NAMELESS, NEW, ANY, KINDS };

	for (int kind = NAMELESS; kind < KINDS; kind++)
		for (size_t i = 0; i < profile_sample_count(s->profile) && fallen > 0; i++) {
			int64_t *value = &s->values[i * s->types + column];

			if (*value > 0 &&
			    (kind == ANY || (kind == NEW && !s->known[i]) ||
			        (kind == NAMELESS && is_nameless(s->profile, i))))
				*value = take(*value, &fallen);
		}
}

/* Returns the sum of all that has fallen. */
static int64_t settle_fallen(struct subtraction *s)
{
	int64_t sum = 0;

	for (size_t c = 0; c < s->column_count; c++) {
		size_t t = type_in_base(s, s->columns[c]);
		int64_t fallen = 0;

		for (size_t i = 0; t < s->base->type_count && i < s->base->count; i++)
			if (s->left[i].values[t] > 0)
				fallen = add_saturating(fallen, s->left[i].values[t]);
		take_fallen(s, s->columns[c], fallen);
		sum = add_saturating(sum, fallen);
	}
	return sum;
}

int64_t *delta_values(const struct profile *profile, const struct origin *origin,
    const struct delta_table *base, int64_t *fallen)
{
	size_t types = profile_sample_type_count(profile), samples = profile_sample_count(profile);
	size_t columns[DELTA_TYPES_MAX], column_count = columns_of(profile, origin, columns);
	struct subtraction s = {.profile = profile,
	    .base = base,
	    .columns = columns,
	    .column_count = column_count,
	    .types = types};
	int err;

	*fallen = 0;
	s.values = calloc(samples * types + 1, sizeof(*s.values));
	s.left = calloc(base->count + 1, sizeof(*s.left));
	s.known = calloc(samples + 1, sizeof(*s.known));
	err = s.values && s.left && s.known ? 0 : -ENOMEM;
	for (size_t i = 0; !err && i < samples; i++)
		memcpy(s.values + i * types, profile_sample(profile, i).values, types * sizeof(*s.values));
	for (size_t i = 0; !err && base->unknown && i < samples; i++)
		for (size_t c = 0; c < column_count; c++)
			s.values[i * types + columns[c]] = 0;
	if (!err && base->count && column_count) {
		memcpy(s.left, base->rows, base->count * sizeof(*s.left));
		err = subtract(&s);
		*fallen = err ? 0 : settle_fallen(&s);
	}
	free(s.left);
	free(s.known);
	if (!err)
		return s.values;
	free(s.values);
	return NULL;
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

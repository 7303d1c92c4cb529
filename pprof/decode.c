/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a profile come in any order (Go writes its string table last), so the bytes are walked once
 * per table: strings and header first, then each table after those it refers to. A walk over the top level
 * only hops from entry to entry.
 */
#include "pprof/decode.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/array.h"
#include "pprof/gzip.h"
#include "pprof/idmap.h"
#include "pprof/profile.h"
#include "pprof/schema.h"
#include "pprof/wire.h"

struct decoder {
	struct profile *p;
	struct wire all;
	size_t max_bytes, own_bytes;          /* memory that may be taken; that of the arrays below */
	uint64_t header[PROFILE_FIELD_COUNT]; /* [field], the single numbers */
	struct wire period_type;
	const char **strings;
	size_t string_count, string_capacity;
	struct idmap mappings, functions, locations;
	/* the entry at hand */
	uint32_t *stack;
	size_t stack_capacity;
	int64_t *values;
	size_t value_capacity;
	struct profile_label *labels;
	size_t label_capacity;
	struct profile_line *lines;
	size_t line_capacity;
};

/* Is there more than may be, with what the file unpacks to? */
static enum decode_error check_memory(const struct decoder *d)
{
	size_t bytes = wire_left(&d->all) + d->own_bytes + profile_bytes(d->p) + idmap_bytes(&d->mappings) +
	    idmap_bytes(&d->functions) + idmap_bytes(&d->locations);

	return bytes > d->max_bytes ? DECODE_TOO_LARGE : DECODE_OK;
}

/* Room in one of the decoder's own arrays. */
static enum decode_error reserve(
    struct decoder *d, void *items, size_t *capacity, size_t need, size_t item_bytes)
{
	size_t before = *capacity;

	if (array_reserve(items, capacity, need, item_bytes))
		return DECODE_NO_MEMORY;
	if (*capacity == before)
		return DECODE_OK;
	d->own_bytes += (*capacity - before) * item_bytes;
	return check_memory(d);
}

typedef enum decode_error decode_entry(struct decoder *d, struct wire_field *field);

/* Calls entry for every top-level field of that number; 0 means every field. */
static enum decode_error each(struct decoder *d, uint32_t number, decode_entry *entry)
{
	struct wire w = d->all;
	struct wire_field field;
	enum decode_error error = DECODE_OK;
	int status = 0;

	while (!error && (status = wire_next(&w, &field)) > 0)
		if (!number || field.number == number) {
			error = entry(d, &field);
			error = error ? error : check_memory(d);
		}
	return status < 0 ? DECODE_NOT_A_PROFILE : error;
}

static enum decode_error read_numbers(const struct wire_field *message, uint64_t *numbers, uint32_t count)
{
	return wire_numbers(message, numbers, count, NULL) ? DECODE_NOT_A_PROFILE : DECODE_OK;
}

/* NULL for an index outside the table. */
static const char *string(const struct decoder *d, uint64_t index)
{
	return index < d->string_count ? d->strings[index] : NULL;
}

static enum decode_error from_errno(int err)
{
	return err == -ENOMEM ? DECODE_NO_MEMORY : DECODE_TOO_LARGE;
}

/* ---- strings and header */

static enum decode_error read_string(struct decoder *d, const struct wire_field *field)
{
	enum decode_error error;
	const char *text;

	if (field->type != WIRE_BYTES)
		return DECODE_NOT_A_PROFILE;
	if (!d->string_count && wire_left(&field->bytes))
		return DECODE_BAD_STRING_TABLE;
	error = reserve(d, &d->strings, &d->string_capacity, d->string_count + 1, sizeof(*d->strings));
	if (error)
		return error;
	text = profile_add_string(d->p, field->bytes.at, wire_left(&field->bytes));
	if (!text)
		return from_errno(profile_error(d->p));
	d->strings[d->string_count++] = text;
	return DECODE_OK;
}

static enum decode_error read_top_level(struct decoder *d, struct wire_field *field)
{
	switch (field->number) {
	case PROFILE_STRING_TABLE:
		return read_string(d, field);
	case PROFILE_TIME_NANOS:
		if (d->header[PROFILE_TIME_NANOS])
			return DECODE_CONCATENATED;
		break;
	case PROFILE_DROP_FRAMES:
	case PROFILE_KEEP_FRAMES:
	case PROFILE_DURATION_NANOS:
	case PROFILE_PERIOD:
	case PROFILE_DEFAULT_SAMPLE_TYPE:
	case PROFILE_DOC_URL:
		break;
	case PROFILE_PERIOD_TYPE:
		if (field->type != WIRE_BYTES)
			return DECODE_NOT_A_PROFILE;
		d->period_type = field->bytes;
		return DECODE_OK;
	default:
		return DECODE_OK;
	}
	if (field->type != WIRE_VARINT)
		return DECODE_NOT_A_PROFILE;
	d->header[field->number] = field->value;
	return DECODE_OK;
}

static enum decode_error set_header(struct decoder *d)
{
	struct wire_field message = {.type = WIRE_BYTES, .bytes = d->period_type};
	uint64_t period_type[VALUE_TYPE_FIELD_COUNT];
	const char *type, *unit, *drop, *keep, *default_type, *url;
	enum decode_error error = read_numbers(&message, period_type, VALUE_TYPE_FIELD_COUNT);

	if (error)
		return error;
	type = string(d, period_type[VALUE_TYPE_TYPE]);
	unit = string(d, period_type[VALUE_TYPE_UNIT]);
	drop = string(d, d->header[PROFILE_DROP_FRAMES]);
	keep = string(d, d->header[PROFILE_KEEP_FRAMES]);
	default_type = string(d, d->header[PROFILE_DEFAULT_SAMPLE_TYPE]);
	url = string(d, d->header[PROFILE_DOC_URL]);
	if (!type || !unit || !drop || !keep || !default_type || !url)
		return DECODE_BAD_STRING;
	profile_set_period(d->p, type, unit, (int64_t)d->header[PROFILE_PERIOD]);
	profile_set_time(
	    d->p, (int64_t)d->header[PROFILE_TIME_NANOS], (int64_t)d->header[PROFILE_DURATION_NANOS]);
	profile_set_drop_frames(d->p, drop);
	profile_set_keep_frames(d->p, keep);
	profile_set_default_sample_type(d->p, default_type);
	profile_set_doc_url(d->p, url);
	return DECODE_OK;
}

static enum decode_error read_comment(struct decoder *d, struct wire_field *field)
{
	uint64_t index;
	int status;

	while ((status = wire_repeated(field, &index)) > 0) {
		const char *text = string(d, index);

		if (!text)
			return DECODE_BAD_STRING;
		profile_add_comment(d->p, text);
	}
	return status < 0 ? DECODE_NOT_A_PROFILE : DECODE_OK;
}

static enum decode_error read_sample_type(struct decoder *d, struct wire_field *field)
{
	uint64_t numbers[VALUE_TYPE_FIELD_COUNT];
	enum decode_error error = read_numbers(field, numbers, VALUE_TYPE_FIELD_COUNT);
	const char *type, *unit;

	if (error)
		return error;
	type = string(d, numbers[VALUE_TYPE_TYPE]);
	unit = string(d, numbers[VALUE_TYPE_UNIT]);
	if (!type || !unit)
		return DECODE_BAD_STRING;
	profile_add_sample_type(d->p, type, unit);
	return DECODE_OK;
}

/* ---- tables */

static enum decode_error add_id(struct idmap *map, uint64_t file_id, uint32_t id, enum decode_error bad_id)
{
	int err = idmap_add(map, file_id, id);

	if (err == -EINVAL || err == -EEXIST)
		return bad_id;
	return err ? from_errno(err) : DECODE_OK;
}

static enum decode_error read_mapping(struct decoder *d, struct wire_field *field)
{
	uint64_t n[MAPPING_FIELD_COUNT];
	enum decode_error error = read_numbers(field, n, MAPPING_FIELD_COUNT);
	struct profile_mapping mapping;
	uint32_t id;

	if (error)
		return error;
	mapping.start = n[MAPPING_MEMORY_START];
	mapping.limit = n[MAPPING_MEMORY_LIMIT];
	mapping.file_offset = n[MAPPING_FILE_OFFSET];
	mapping.filename = string(d, n[MAPPING_FILENAME]);
	mapping.build_id = string(d, n[MAPPING_BUILD_ID]);
	mapping.flags = (n[MAPPING_HAS_FUNCTIONS] ? PROFILE_HAS_FUNCTIONS : 0) |
	    (n[MAPPING_HAS_FILENAMES] ? PROFILE_HAS_FILENAMES : 0) |
	    (n[MAPPING_HAS_LINE_NUMBERS] ? PROFILE_HAS_LINE_NUMBERS : 0) |
	    (n[MAPPING_HAS_INLINE_FRAMES] ? PROFILE_HAS_INLINE_FRAMES : 0);
	if (!mapping.filename || !mapping.build_id)
		return DECODE_BAD_STRING;
	id = profile_add_mapping(d->p, &mapping);
	return id ? add_id(&d->mappings, n[MAPPING_ID], id, DECODE_BAD_MAPPING_ID)
	          : from_errno(profile_error(d->p));
}

static enum decode_error read_function(struct decoder *d, struct wire_field *field)
{
	uint64_t n[FUNCTION_FIELD_COUNT];
	enum decode_error error = read_numbers(field, n, FUNCTION_FIELD_COUNT);
	struct profile_function function;
	uint32_t id;

	if (error)
		return error;
	function.name = string(d, n[FUNCTION_NAME]);
	function.system_name = string(d, n[FUNCTION_SYSTEM_NAME]);
	function.filename = string(d, n[FUNCTION_FILENAME]);
	function.start_line = (int64_t)n[FUNCTION_START_LINE];
	if (!function.name || !function.system_name || !function.filename)
		return DECODE_BAD_STRING;
	id = profile_add_function(d->p, &function);
	return id ? add_id(&d->functions, n[FUNCTION_ID], id, DECODE_BAD_FUNCTION_ID)
	          : from_errno(profile_error(d->p));
}

static enum decode_error read_line(struct decoder *d, struct wire_field *field, size_t index)
{
	uint64_t n[LINE_FIELD_COUNT];
	enum decode_error error = read_numbers(field, n, LINE_FIELD_COUNT);
	struct profile_line *line;

	if (error)
		return error;
	error = reserve(d, &d->lines, &d->line_capacity, index + 1, sizeof(*d->lines));
	if (error)
		return error;
	line = &d->lines[index];
	line->function = idmap_find(&d->functions, n[LINE_FUNCTION_ID]);
	line->line = (int64_t)n[LINE_LINE];
	line->column = (int64_t)n[LINE_COLUMN];
	return line->function ? DECODE_OK : DECODE_NO_FUNCTION;
}

/* The single numbers of a location; its lines go to d->lines. */
static enum decode_error read_location_fields(
    struct decoder *d, struct wire_field *message, uint64_t *n, size_t *line_count)
{
	struct wire_field field;
	enum decode_error error = DECODE_OK;
	int status = 0;

	*line_count = 0;
	memset(n, 0, LOCATION_FIELD_COUNT * sizeof(*n));
	if (message->type != WIRE_BYTES)
		return DECODE_NOT_A_PROFILE;
	while (!error && (status = wire_next(&message->bytes, &field)) > 0) {
		if (field.number == LOCATION_LINE)
			error = read_line(d, &field, (*line_count)++);
		else if (field.number < LOCATION_FIELD_COUNT && field.type != WIRE_VARINT)
			error = DECODE_NOT_A_PROFILE;
		else if (field.number < LOCATION_FIELD_COUNT)
			n[field.number] = field.value;
	}
	return status < 0 ? DECODE_NOT_A_PROFILE : error;
}

static enum decode_error read_location(struct decoder *d, struct wire_field *field)
{
	uint64_t n[LOCATION_FIELD_COUNT];
	struct profile_location location;
	size_t line_count;
	enum decode_error error = read_location_fields(d, field, n, &line_count);
	uint32_t id;

	if (error)
		return error;
	location.mapping = idmap_find(&d->mappings, n[LOCATION_MAPPING_ID]);
	location.address = n[LOCATION_ADDRESS];
	location.lines = d->lines;
	location.line_count = line_count;
	location.folded = n[LOCATION_IS_FOLDED] != 0;
	id = profile_add_location(d->p, &location);
	return id ? add_id(&d->locations, n[LOCATION_ID], id, DECODE_BAD_LOCATION_ID)
	          : from_errno(profile_error(d->p));
}

/* ---- samples */

static enum decode_error read_stack(struct decoder *d, struct wire_field *field, size_t *depth)
{
	enum decode_error error;
	uint64_t file_id;
	int status;

	while ((status = wire_repeated(field, &file_id)) > 0) {
		error = reserve(d, &d->stack, &d->stack_capacity, *depth + 1, sizeof(*d->stack));
		if (error)
			return error;
		d->stack[*depth] = idmap_find(&d->locations, file_id);
		if (!d->stack[(*depth)++])
			return DECODE_NO_LOCATION;
	}
	return status < 0 ? DECODE_NOT_A_PROFILE : DECODE_OK;
}

static enum decode_error read_values(struct decoder *d, struct wire_field *field, size_t *count)
{
	enum decode_error error;
	uint64_t value;
	int status;

	while ((status = wire_repeated(field, &value)) > 0) {
		error = reserve(d, &d->values, &d->value_capacity, *count + 1, sizeof(*d->values));
		if (error)
			return error;
		d->values[(*count)++] = (int64_t)value;
	}
	return status < 0 ? DECODE_NOT_A_PROFILE : DECODE_OK;
}

static enum decode_error read_label(struct decoder *d, struct wire_field *field, size_t index)
{
	uint64_t n[LABEL_FIELD_COUNT];
	enum decode_error error = read_numbers(field, n, LABEL_FIELD_COUNT);
	struct profile_label *label;
	const char *str;

	if (error)
		return error;
	error = reserve(d, &d->labels, &d->label_capacity, index + 1, sizeof(*d->labels));
	if (error)
		return error;
	label = &d->labels[index];
	str = string(d, n[LABEL_STR]);
	label->key = string(d, n[LABEL_KEY]);
	label->str = n[LABEL_STR] ? str : NULL;
	label->num = (int64_t)n[LABEL_NUM];
	label->unit = string(d, n[LABEL_NUM_UNIT]);
	return str && label->key && label->unit ? DECODE_OK : DECODE_BAD_STRING;
}

static enum decode_error read_sample(struct decoder *d, struct wire_field *message)
{
	size_t depth = 0, value_count = 0, label_count = 0;
	enum decode_error error = DECODE_OK;
	struct wire_field field;
	int status = 0, err;

	if (message->type != WIRE_BYTES)
		return DECODE_NOT_A_PROFILE;
	while (!error && (status = wire_next(&message->bytes, &field)) > 0) {
		if (field.number == SAMPLE_LOCATION_ID)
			error = read_stack(d, &field, &depth);
		else if (field.number == SAMPLE_VALUE)
			error = read_values(d, &field, &value_count);
		else if (field.number == SAMPLE_LABEL)
			error = read_label(d, &field, label_count++);
	}
	if (error || status < 0)
		return error ? error : DECODE_NOT_A_PROFILE;
	if (!profile_sample_type_count(d->p))
		return DECODE_NO_SAMPLE_TYPE;
	if (value_count != profile_sample_type_count(d->p))
		return DECODE_BAD_VALUE_COUNT;
	err = profile_add_sample(d->p, d->stack, depth, d->values, d->labels, label_count);
	return err ? from_errno(err) : DECODE_OK;
}

/* ---- the whole */

static enum decode_error read_tables(struct decoder *d)
{
	static const struct {
		uint32_t number;
		decode_entry *entry;
	} tables[] = {
	    {PROFILE_SAMPLE_TYPE, read_sample_type},
	    {PROFILE_COMMENT, read_comment},
	    {PROFILE_MAPPING, read_mapping},
	    {PROFILE_FUNCTION, read_function},
	    {PROFILE_LOCATION, read_location},
	    {PROFILE_SAMPLE, read_sample},
	};
	enum decode_error error = DECODE_OK;
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(*tables) && !error; i++)
		error = each(d, tables[i].number, tables[i].entry);
	if (!error && profile_error(d->p))
		error = from_errno(profile_error(d->p));
	return error;
}

static enum decode_error decode_plain(const uint8_t *data, size_t len, size_t max_bytes, struct profile **out)
{
	struct decoder d = {.p = profile_new(), .all = {data, data + len}, .max_bytes = max_bytes};
	enum decode_error error = d.p ? DECODE_OK : DECODE_NO_MEMORY;

	if (!error)
		error = each(&d, 0, read_top_level);
	if (!error)
		error = set_header(&d);
	if (!error)
		error = read_tables(&d);
	free(d.strings);
	free(d.stack);
	free(d.values);
	free(d.labels);
	free(d.lines);
	idmap_fini(&d.mappings);
	idmap_fini(&d.functions);
	idmap_fini(&d.locations);
	if (error)
		profile_free(d.p);
	else
		*out = d.p;
	return error;
}

static enum decode_error from_gzip_errno(int err)
{
	switch (err) {
	case 0:
		return DECODE_OK;
	case -ENOMEM:
		return DECODE_NO_MEMORY;
	case -EFBIG:
		return DECODE_TOO_LARGE;
	case -ENODATA:
		return DECODE_TRUNCATED_GZIP;
	default:
		return DECODE_DAMAGED_GZIP;
	}
}

enum decode_error decode_profile(const void *data, size_t len, size_t max_bytes, struct profile **out)
{
	struct gzip_info info;
	enum decode_error error;
	uint8_t *plain;
	size_t plain_len;

	if (!len)
		return DECODE_EMPTY;
	if (!gzip_detect(data, len))
		return decode_plain(data, len, max_bytes, out);
	error = from_gzip_errno(gzip_decode(data, len, max_bytes, &plain, &plain_len, &info));
	if (error)
		return error;
	if (info.trailing_bytes)
		error = DECODE_TRAILING_BYTES;
	else if (!plain_len)
		error = DECODE_EMPTY;
	else
		error = decode_plain(plain, plain_len, max_bytes, out);
	free(plain);
	return error;
}

const char *decode_error_string(enum decode_error error)
{
	static const char *const texts[DECODE_ERROR_COUNT] = {
	    [DECODE_OK] = "no error",
	    [DECODE_NO_MEMORY] = "not enough memory",
	    [DECODE_EMPTY] = "the file is empty",
	    [DECODE_TOO_LARGE] = "the profile takes too much memory",
	    [DECODE_TRUNCATED_GZIP] = "the gzip data is cut short",
	    [DECODE_DAMAGED_GZIP] = "the gzip data is damaged",
	    [DECODE_TRAILING_BYTES] = "there are bytes after the end of the gzip data",
	    [DECODE_NOT_A_PROFILE] = "not a pprof profile (no valid profile.proto message)",
	    [DECODE_CONCATENATED] = "several profiles in one file",
	    [DECODE_BAD_STRING_TABLE] = "the string table does not begin with the empty string",
	    [DECODE_BAD_STRING] = "a string index is outside the string table",
	    [DECODE_NO_SAMPLE_TYPE] = "there are samples but no sample types",
	    [DECODE_BAD_MAPPING_ID] = "a mapping's id is zero or used twice",
	    [DECODE_BAD_FUNCTION_ID] = "a function's id is zero or used twice",
	    [DECODE_BAD_LOCATION_ID] = "a location's id is zero or used twice",
	    [DECODE_NO_FUNCTION] = "a location names a function that does not exist",
	    [DECODE_NO_LOCATION] = "a sample names a location that does not exist",
	    [DECODE_BAD_VALUE_COUNT] = "a sample has not one value per sample type",
	};

	return error < DECODE_ERROR_COUNT ? texts[error] : "unknown error";
}

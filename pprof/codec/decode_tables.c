/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding the tables: mappings, functions, locations (whose ids in the file may be sparse) and samples. */
#include "pprof/codec/decoder.h"

#include <errno.h>
#include <string.h>

/* Decoding mappings, functions and locations. */

static enum decode_error add_id(struct idmap *map, uint64_t file_id, uint32_t id, enum decode_error bad_id)
{
	int err = idmap_add(map, file_id, id);

	if (err == -EINVAL || err == -EEXIST)
		return bad_id;
	return err ? decoder_errno(err) : DECODE_OK;
}

enum decode_error decode_mapping(struct decoder *d, struct wire_field *field)
{
	uint64_t n[MAPPING_FIELD_COUNT];
	enum decode_error error = decoder_numbers(field, n, MAPPING_FIELD_COUNT);
	struct profile_mapping mapping;
	uint32_t id;

	if (error)
		return error;
	mapping.start = n[MAPPING_MEMORY_START];
	mapping.limit = n[MAPPING_MEMORY_LIMIT];
	mapping.file_offset = n[MAPPING_FILE_OFFSET];
	mapping.filename = decoder_string(d, n[MAPPING_FILENAME]);
	mapping.build_id = decoder_string(d, n[MAPPING_BUILD_ID]);
	mapping.flags = (n[MAPPING_HAS_FUNCTIONS] ? PROFILE_HAS_FUNCTIONS : 0) |
	    (n[MAPPING_HAS_FILENAMES] ? PROFILE_HAS_FILENAMES : 0) |
	    (n[MAPPING_HAS_LINE_NUMBERS] ? PROFILE_HAS_LINE_NUMBERS : 0) |
	    (n[MAPPING_HAS_INLINE_FRAMES] ? PROFILE_HAS_INLINE_FRAMES : 0);
	if (!mapping.filename || !mapping.build_id)
		return decoder_string_error(d);
	id = profile_add_mapping(d->p, &mapping);
	return id ? add_id(&d->mappings, n[MAPPING_ID], id, DECODE_BAD_MAPPING_ID)
	          : decoder_errno(profile_error(d->p));
}

enum decode_error decode_function(struct decoder *d, struct wire_field *field)
{
	uint64_t n[FUNCTION_FIELD_COUNT];
	enum decode_error error = decoder_numbers(field, n, FUNCTION_FIELD_COUNT);
	struct profile_function function;
	uint32_t id;

	if (error)
		return error;
	function.name = decoder_string(d, n[FUNCTION_NAME]);
	function.system_name = decoder_string(d, n[FUNCTION_SYSTEM_NAME]);
	function.filename = decoder_string(d, n[FUNCTION_FILENAME]);
	function.start_line = (int64_t)n[FUNCTION_START_LINE];
	if (!function.name || !function.system_name || !function.filename)
		return decoder_string_error(d);
	id = profile_add_function(d->p, &function);
	return id ? add_id(&d->functions, n[FUNCTION_ID], id, DECODE_BAD_FUNCTION_ID)
	          : decoder_errno(profile_error(d->p));
}

static enum decode_error read_line(struct decoder *d, struct wire_field *field, size_t index)
{
	uint64_t n[LINE_FIELD_COUNT];
	enum decode_error error = decoder_numbers(field, n, LINE_FIELD_COUNT);
	struct profile_line *line;

	if (error)
		return error;
	error = decoder_reserve(d, &d->lines, &d->line_capacity, index + 1, sizeof(*d->lines));
	if (error)
		return error;
	line = &d->lines[index];
	line->function = idmap_find(&d->functions, n[LINE_FUNCTION_ID]);
	line->line = (int64_t)n[LINE_LINE];
	line->column = (int64_t)n[LINE_COLUMN];
	return line->function ? DECODE_OK : DECODE_NO_FUNCTION;
}

/* Readers show each line with its function's name and file, and the mapping's. */
static enum decode_error refer_to_shown(struct decoder *d, const struct profile_location *location)
{
	enum decode_error error = DECODE_OK;
	size_t i;

	if (location->mapping)
		error = decoder_refer(d, profile_mapping(d->p, location->mapping).filename,
		    location->line_count ? location->line_count : 1);
	for (i = 0; i < location->line_count && !error; i++) {
		struct profile_function function = profile_function(d->p, location->lines[i].function);

		error = decoder_refer(d, function.name, 1);
		if (!error)
			error = decoder_refer(d, function.filename, 1);
	}
	return error;
}

/* Numeric fields to n, by field number; lines to d->lines. */
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

enum decode_error decode_location(struct decoder *d, struct wire_field *field)
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
	error = refer_to_shown(d, &location);
	if (error)
		return error;
	id = profile_add_location(d->p, &location);
	return id ? add_id(&d->locations, n[LOCATION_ID], id, DECODE_BAD_LOCATION_ID)
	          : decoder_errno(profile_error(d->p));
}

/* Decoding samples. */

static enum decode_error read_stack(struct decoder *d, struct wire_field *field, size_t *depth)
{
	enum decode_error error;
	uint64_t file_id;
	int status;

	while ((status = wire_repeated(field, &file_id)) > 0) {
		error = decoder_reserve(d, &d->stack, &d->stack_capacity, *depth + 1, sizeof(*d->stack));
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
		error = decoder_reserve(d, &d->values, &d->value_capacity, *count + 1, sizeof(*d->values));
		if (error)
			return error;
		d->values[(*count)++] = (int64_t)value;
	}
	return status < 0 ? DECODE_NOT_A_PROFILE : DECODE_OK;
}

static enum decode_error read_label(struct decoder *d, struct wire_field *field, size_t index)
{
	uint64_t n[LABEL_FIELD_COUNT];
	enum decode_error error = decoder_numbers(field, n, LABEL_FIELD_COUNT);
	struct profile_label *label;
	const char *str;

	if (error)
		return error;
	error = decoder_reserve(d, &d->labels, &d->label_capacity, index + 1, sizeof(*d->labels));
	if (error)
		return error;
	label = &d->labels[index];
	str = decoder_string(d, n[LABEL_STR]);
	label->key = decoder_string(d, n[LABEL_KEY]);
	label->str = n[LABEL_STR] ? str : NULL;
	label->num = (int64_t)n[LABEL_NUM];
	label->unit = decoder_string(d, n[LABEL_NUM_UNIT]);
	return str && label->key && label->unit ? DECODE_OK : decoder_string_error(d);
}

enum decode_error decode_sample(struct decoder *d, struct wire_field *message)
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
	return err ? decoder_errno(err) : DECODE_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding as a whole: gzip or plain, then the passes over the bytes. What is not a table of entries with ids
 * is read here: strings, single fields, comments and sample types.
 *
 * The fields of a profile come in any order (Go writes its string table last), so the bytes are walked once
 * per table: strings and header first, then each table after those it refers to. A pass over the top
 * level skips from field to field without looking inside.
 */
#include "pprof/codec/decode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/codec/decoder.h"
#include "pprof/codec/file.h"
#include "pprof/codec/gzip.h"

/* The text for each error of decoding. */

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
	    [DECODE_BAD_VALUE_COUNT] = "a sample does not have one value per sample type",
	};

	return error < DECODE_ERROR_COUNT ? texts[error] : "unknown error";
}

/* Decoding what is not a table of entries with ids: strings, single fields, comments, sample types. */

static enum decode_error read_string(struct decoder *d, const struct wire_field *field)
{
	enum decode_error error;
	const char *text;

	if (field->type != WIRE_BYTES)
		return DECODE_NOT_A_PROFILE;
	if (!d->string_count && wire_left(&field->bytes))
		return DECODE_BAD_STRING_TABLE;
	error =
	    decoder_reserve(d, &d->strings, &d->string_capacity, d->string_count + 1, sizeof(*d->strings));
	if (error)
		return error;
	text = profile_add_string(d->p, field->bytes.at, wire_left(&field->bytes));
	if (!text)
		return decoder_errno(profile_error(d->p));
	d->strings[d->string_count++] = text;
	return DECODE_OK;
}

/* The first pass over the file: keeps strings and single fields. Tables are left for later. */
static enum decode_error keep_field(struct decoder *d, struct wire_field *field)
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

/* Once every string is known: gives the profile what keep_field() kept. */
static enum decode_error set_header(struct decoder *d)
{
	struct wire_field message = {.type = WIRE_BYTES, .bytes = d->period_type};
	uint64_t period_type[VALUE_TYPE_FIELD_COUNT];
	const char *type, *unit, *drop, *keep, *default_type, *url;
	enum decode_error error = decoder_numbers(&message, period_type, VALUE_TYPE_FIELD_COUNT);

	if (error)
		return error;
	type = decoder_string(d, period_type[VALUE_TYPE_TYPE]);
	unit = decoder_string(d, period_type[VALUE_TYPE_UNIT]);
	drop = decoder_string(d, d->header[PROFILE_DROP_FRAMES]);
	keep = decoder_string(d, d->header[PROFILE_KEEP_FRAMES]);
	default_type = decoder_string(d, d->header[PROFILE_DEFAULT_SAMPLE_TYPE]);
	url = decoder_string(d, d->header[PROFILE_DOC_URL]);
	if (!type || !unit || !drop || !keep || !default_type || !url)
		return decoder_string_error(d);
	profile_set_period(d->p, type, unit, (int64_t)d->header[PROFILE_PERIOD]);
	profile_set_time(
	    d->p, (int64_t)d->header[PROFILE_TIME_NANOS], (int64_t)d->header[PROFILE_DURATION_NANOS]);
	profile_set_drop_frames(d->p, drop);
	profile_set_keep_frames(d->p, keep);
	profile_set_default_sample_type(d->p, default_type);
	profile_set_doc_url(d->p, url);
	return DECODE_OK;
}

static enum decode_error add_comment(struct decoder *d, struct wire_field *field)
{
	uint64_t index;
	int status;

	while ((status = wire_repeated(field, &index)) > 0) {
		const char *text = decoder_string(d, index);

		if (!text)
			return decoder_string_error(d);
		profile_add_comment(d->p, text);
	}
	return status < 0 ? DECODE_NOT_A_PROFILE : DECODE_OK;
}

static enum decode_error add_sample_type(struct decoder *d, struct wire_field *field)
{
	uint64_t numbers[VALUE_TYPE_FIELD_COUNT];
	enum decode_error error = decoder_numbers(field, numbers, VALUE_TYPE_FIELD_COUNT);
	const char *type, *unit;

	if (error)
		return error;
	type = decoder_string(d, numbers[VALUE_TYPE_TYPE]);
	unit = decoder_string(d, numbers[VALUE_TYPE_UNIT]);
	if (!type || !unit)
		return decoder_string_error(d);
	profile_add_sample_type(d->p, type, unit);
	return DECODE_OK;
}

/*
 * Decoding as a whole: gzip or plain, then the passes over the bytes.
 *
 * The fields of a profile come in any order (Go writes its string table last), so the bytes are walked once
 * per table: strings and header first, then each table after those it refers to. A pass over the top
 * level skips from field to field without looking inside.
 */

/* Calls entry for every top-level field of that number; 0 means every field. */
static enum decode_error each(struct decoder *d, uint32_t number, decoder_entry *entry)
{
	struct wire w = d->all;
	struct wire_field field;
	enum decode_error error = DECODE_OK;
	int status = 0;

	while (!error && (status = wire_next(&w, &field)) > 0)
		if (!number || field.number == number) {
			error = entry(d, &field);
			error = error ? error : decoder_check_memory(d);
		}
	return status < 0 ? DECODE_NOT_A_PROFILE : error;
}

static enum decode_error read_tables(struct decoder *d)
{
	static const struct {
		uint32_t number;
		decoder_entry *entry;
	} tables[] = {
	    {PROFILE_SAMPLE_TYPE, add_sample_type},
	    {PROFILE_COMMENT, add_comment},
	    {PROFILE_MAPPING, decode_mapping},
	    {PROFILE_FUNCTION, decode_function},
	    {PROFILE_LOCATION, decode_location},
	    {PROFILE_SAMPLE, decode_sample},
	};
	enum decode_error error = DECODE_OK;
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(*tables) && !error; i++)
		error = each(d, tables[i].number, tables[i].entry);
	if (!error && profile_error(d->p))
		error = decoder_errno(profile_error(d->p));
	return error;
}

static enum decode_error decode_plain(const uint8_t *data, size_t len, size_t max_bytes, struct profile **out)
{
	struct decoder d = {.p = profile_new(), .all = {data, data + len}, .max_bytes = max_bytes};
	enum decode_error error = d.p ? DECODE_OK : DECODE_NO_MEMORY;

	if (!error)
		error = each(&d, 0, keep_field);
	if (!error)
		error = set_header(&d);
	if (!error)
		error = read_tables(&d);
	decoder_fini(&d);
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

int decode_file(const char *path, size_t max_bytes, struct profile **out, char *error, size_t error_bytes)
{
	uint8_t *data;
	size_t len;
	enum decode_error decoded;
	int err = file_read(strcmp(path, "-") ? path : "/dev/stdin", max_bytes, &data, &len);

	if (err) {
		snprintf(error, error_bytes, "cannot read %s: %s", path, file_read_error(err));
		return err;
	}
	decoded = decode_profile(data, len, max_bytes, out);
	free(data);
	if (decoded == DECODE_OK)
		return 0;
	if (decoded == DECODE_TOO_LARGE || decoded == DECODE_NO_MEMORY) {
		snprintf(error, error_bytes, "cannot read %s: %s", path, decode_error_string(decoded));
		return decoded == DECODE_NO_MEMORY ? -ENOMEM : -EFBIG;
	}
	snprintf(error, error_bytes,
	    "cannot read %s: %s; a heap profile is a profile.proto file, gzipped or not", path,
	    decode_error_string(decoded));
	return decoded == DECODE_NOT_A_PROFILE || decoded == DECODE_EMPTY ? -ENOMSG : -EINVAL;
}

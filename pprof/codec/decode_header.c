/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding a file's string table, its single fields (time, period, ...), comments and sample types. */
/* Decoding what is not a table of entries with ids: strings, single fields, comments, sample types. */
#include "pprof/codec/decoder.h"

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

enum decode_error decode_top_level(struct decoder *d, struct wire_field *field)
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

enum decode_error decode_header(struct decoder *d)
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

enum decode_error decode_comment(struct decoder *d, struct wire_field *field)
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

enum decode_error decode_sample_type(struct decoder *d, struct wire_field *field)
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

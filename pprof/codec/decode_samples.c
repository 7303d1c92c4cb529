/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding samples: stacks, values and labels. */
/* Decoding samples. */
#include "pprof/codec/decoder.h"

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

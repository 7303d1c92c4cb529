/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/codec/wire.h"

#include <errno.h>
#include <string.h>

/* Ten bytes hold 70 bits: the last one may only be 0 or 1. */
bool wire_varint(struct wire *w, uint64_t *value)
{
	const uint8_t *at = w->at;
	uint64_t result = 0;
	unsigned int shift;

	for (shift = 0; shift < 64 && at < w->end; shift += 7) {
		uint8_t byte = *at++;

		if (shift == 63 && byte > 1)
			return false;
		result |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			w->at = at;
			*value = result;
			return true;
		}
	}
	return false;
}

static bool fixed(struct wire *w, size_t size, uint64_t *value)
{
	size_t i;

	if (wire_left(w) < size)
		return false;
	*value = 0;
	for (i = 0; i < size; i++)
		*value |= (uint64_t)w->at[i] << (8 * i);
	w->at += size;
	return true;
}

int wire_next(struct wire *w, struct wire_field *field)
{
	enum { LARGEST_NUMBER = (1 << 29) - 1 };
	uint64_t tag, len;

	if (w->at == w->end)
		return 0;
	if (!wire_varint(w, &tag) || !(tag >> 3) || tag >> 3 > LARGEST_NUMBER)
		return -EBADMSG;
	field->number = (uint32_t)(tag >> 3);
	field->value = 0;
	field->bytes = (struct wire){w->at, w->at};
	switch (tag & 7) {
	case WIRE_VARINT:
		field->type = WIRE_VARINT;
		return wire_varint(w, &field->value) ? 1 : -EBADMSG;
	case WIRE_FIXED64:
		field->type = WIRE_FIXED64;
		return fixed(w, 8, &field->value) ? 1 : -EBADMSG;
	case WIRE_FIXED32:
		field->type = WIRE_FIXED32;
		return fixed(w, 4, &field->value) ? 1 : -EBADMSG;
	case WIRE_BYTES:
		field->type = WIRE_BYTES;
		if (!wire_varint(w, &len) || len > wire_left(w))
			return -EBADMSG;
		field->bytes = (struct wire){w->at, w->at + len};
		w->at += len;
		return 1;
	default: /* groups (3, 4) were removed in proto3 */
		return -EBADMSG;
	}
}

int wire_repeated(struct wire_field *field, uint64_t *value)
{
	if (field->type == WIRE_BYTES) {
		if (field->bytes.at == field->bytes.end)
			return 0;
		return wire_varint(&field->bytes, value) ? 1 : -EBADMSG;
	}
	if (field->type != WIRE_VARINT)
		return -EBADMSG;
	*value = field->value;
	field->type = WIRE_BYTES; /* with empty bytes, so that the next call returns 0 */
	return 1;
}

int wire_numbers(
    const struct wire_field *message, uint64_t *numbers, uint32_t count, struct wire_oddities *odd)
{
	struct wire w = message->bytes;
	struct wire_field field;
	uint32_t seen = 0; /* a bit per field; every message of profile.proto has fewer than 32 */
	int status;

	memset(numbers, 0, count * sizeof(*numbers));
	if (message->type != WIRE_BYTES)
		return -EPROTO;
	while ((status = wire_next(&w, &field)) > 0) {
		if (field.number >= count) {
			if (odd)
				odd->unknown = field.number;
			continue;
		}
		if (field.type != WIRE_VARINT)
			return -EPROTO;
		if (odd && seen & 1u << field.number)
			odd->repeated = field.number;
		seen |= 1u << field.number;
		numbers[field.number] = field.value;
	}
	return status;
}

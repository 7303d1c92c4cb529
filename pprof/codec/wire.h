/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf's wire format (protobuf.dev, "Encoding"), read in place: no allocation, no copy, every length
 * checked.
 *
 * The decoder and the checker read files of any origin with it. A generated parser would first build the
 * whole tree, a hundred bytes of heap for two bytes of input, and hide what the checker must see.
 *
 *	struct wire w = { data, data + len };
 *	struct wire_field f;
 *	while ((status = wire_next(&w, &f)) > 0)
 *		switch (f.number) ...
 */
#ifndef PPROF_CODEC_WIRE_H
#define PPROF_CODEC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes that are left to read. */
struct wire {
	const uint8_t *at, *end;
};

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
};

struct wire_field {
	uint32_t number;
	enum wire_type type;
	uint64_t value;    /* of a varint or fixed number */
	struct wire bytes; /* of WIRE_BYTES: a string, a message or packed numbers */
};

/* The next field: 1; 0 at the end; -EBADMSG for malformed bytes, after which nothing can be read. */
int wire_next(struct wire *w, struct wire_field *field);

/* One varint; false at the end or for a damaged one (w->at < w->end tells which). */
bool wire_varint(struct wire *w, uint64_t *value);

/*
 * Numbers of a repeated field, which may come packed or one by one: call until it returns 0. The field is
 * consumed. 1 with *value, 0 when there are no more, -EBADMSG for a wrong type or a damaged number.
 */
int wire_repeated(struct wire_field *field, uint64_t *value);

/* What wire_numbers() skipped. */
struct wire_oddities {
	uint32_t unknown;  /* number of a field that is not in the message, 0 for none */
	uint32_t repeated; /* number of a field that came more than once, 0 for none */
};

/*
 * A message of varints that are not repeated: field n goes to numbers[n] (numbers has count entries), the
 * last one wins, absent ones are 0. Other fields are skipped. odd may be NULL. 0, -EBADMSG for damaged bytes,
 * -EPROTO for a wrong wire type.
 */
int wire_numbers(
    const struct wire_field *message, uint64_t *numbers, uint32_t count, struct wire_oddities *odd);

static inline size_t wire_left(const struct wire *w)
{
	return (size_t)(w->end - w->at);
}

#endif

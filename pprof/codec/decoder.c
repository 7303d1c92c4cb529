/* SPDX-License-Identifier: Apache-2.0 */
/* Memory bound, arrays and errors that every part of the decoder needs. */
#include "pprof/codec/decoder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

/*
 * The decoder and every reader after it go through a text at each place that refers to it. The texts of all
 * these places together may be so many times as long as the memory: a hostile file of 25 KB has a name of
 * 10 MB in 700,000 places.
 */
enum { TEXT_TIMES_MEMORY = 4 };

void decoder_fini(struct decoder *d)
{
	free(d->strings);
	free(d->stack);
	free(d->values);
	free(d->labels);
	free(d->lines);
	idmap_fini(&d->mappings);
	idmap_fini(&d->functions);
	idmap_fini(&d->locations);
}

enum decode_error decoder_check_memory(const struct decoder *d)
{
	size_t bytes = wire_left(&d->all) + d->own_bytes + profile_bytes(d->p) + idmap_bytes(&d->mappings) +
	    idmap_bytes(&d->functions) + idmap_bytes(&d->locations);

	return bytes > d->max_bytes ? DECODE_TOO_LARGE : DECODE_OK;
}

enum decode_error decoder_reserve(
    struct decoder *d, void *items, size_t *capacity, size_t need, size_t item_bytes)
{
	size_t before = *capacity;

	if (array_reserve(items, capacity, need, item_bytes))
		return DECODE_NO_MEMORY;
	if (*capacity == before)
		return DECODE_OK;
	d->own_bytes += (*capacity - before) * item_bytes;
	return decoder_check_memory(d);
}

static bool has_too_much_text(const struct decoder *d)
{
	return d->text_bytes / TEXT_TIMES_MEMORY > d->max_bytes;
}

enum decode_error decoder_refer(struct decoder *d, const char *text, uint64_t times)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(strlen(text), times, &bytes) ||
	    __builtin_add_overflow(d->text_bytes, bytes, &d->text_bytes))
		d->text_bytes = UINT64_MAX;
	return has_too_much_text(d) ? DECODE_TOO_LARGE : DECODE_OK;
}

const char *decoder_string(struct decoder *d, uint64_t index)
{
	const char *text = index < d->string_count ? d->strings[index] : NULL;

	return text && !decoder_refer(d, text, 1) ? text : NULL;
}

enum decode_error decoder_string_error(const struct decoder *d)
{
	return has_too_much_text(d) ? DECODE_TOO_LARGE : DECODE_BAD_STRING;
}

enum decode_error decoder_numbers(const struct wire_field *message, uint64_t *numbers, uint32_t count)
{
	return wire_numbers(message, numbers, count, NULL) ? DECODE_NOT_A_PROFILE : DECODE_OK;
}

enum decode_error decoder_errno(int err)
{
	return err == -ENOMEM ? DECODE_NO_MEMORY : DECODE_TOO_LARGE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Memory bound, arrays and errors that every part of the decoder needs. */
#include "pprof/codec/decoder.h"

#include <errno.h>
#include <stdlib.h>

#include "pprof/table/array.h"

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

enum decode_error decoder_numbers(const struct wire_field *message, uint64_t *numbers, uint32_t count)
{
	return wire_numbers(message, numbers, count, NULL) ? DECODE_NOT_A_PROFILE : DECODE_OK;
}

enum decode_error decoder_errno(int err)
{
	return err == -ENOMEM ? DECODE_NO_MEMORY : DECODE_TOO_LARGE;
}

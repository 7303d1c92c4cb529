/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding as a whole: gzip or plain, then the passes over the bytes.
 *
 * The fields of a profile come in any order (Go writes its string table last), so the bytes are walked once
 * per table: strings and header first, then each table after those it refers to. A pass over the top
 * level skips from field to field without looking inside.
 */
#include "pprof/codec/decode.h"

#include <errno.h>
#include <stdlib.h>

#include "pprof/codec/decoder.h"
#include "pprof/codec/gzip.h"

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
	    {PROFILE_SAMPLE_TYPE, decode_sample_type},
	    {PROFILE_COMMENT, decode_comment},
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
		error = each(&d, 0, decode_top_level);
	if (!error)
		error = decode_header(&d);
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

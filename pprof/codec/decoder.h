/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one decode: the profile being built, what the file's string indexes and ids mean, the bound on
 * memory, and buffers that are reused for every entry. Shared by decode.c and decode_tables.c.
 */
#ifndef PPROF_CODEC_DECODER_H
#define PPROF_CODEC_DECODER_H

#include <stddef.h>
#include <stdint.h>

#include "pprof/codec/decode_error.h"
#include "pprof/codec/wire.h"
#include "pprof/model/profile.h"
#include "pprof/model/schema.h"
#include "pprof/table/index.h"

struct decoder {
	struct profile *p;
	struct wire all;
	size_t max_bytes, own_bytes;          /* limit on memory; memory of the arrays below */
	uint64_t text_bytes;                  /* of strings, as often as they are referred to */
	uint64_t header[PROFILE_FIELD_COUNT]; /* [field]: the numeric fields that are not repeated */
	struct wire period_type;
	const char **strings;
	size_t string_count, string_capacity;
	struct idmap mappings, functions, locations;
	/* buffers for the current entry */
	uint32_t *stack;
	size_t stack_capacity;
	int64_t *values;
	size_t value_capacity;
	struct profile_label *labels;
	size_t label_capacity;
	struct profile_line *lines;
	size_t line_capacity;
};

/* Reads one top-level field into the profile. */
typedef enum decode_error decoder_entry(struct decoder *d, struct wire_field *field);

/* Frees everything but the profile. */
void decoder_fini(struct decoder *d);

/* DECODE_TOO_LARGE if the uncompressed file and all that was made of it take more than max_bytes. */
enum decode_error decoder_check_memory(const struct decoder *d);

/* Makes room for need items in one of the decoder's own arrays; counts the bytes. */
enum decode_error decoder_reserve(
    struct decoder *d, void *items, size_t *capacity, size_t need, size_t item_bytes);

/* The numeric fields of a message, by field number; 0 where a field is missing. */
enum decode_error decoder_numbers(const struct wire_field *message, uint64_t *numbers, uint32_t count);

/* Counts that a text is referred to, `times` times. DECODE_TOO_LARGE if that is more than readers should go
 * through. */
enum decode_error decoder_refer(struct decoder *d, const char *text, uint64_t times);

/* The file's string of that index, referred to. NULL, decoder_string_error() says why: an index outside the
 * table, or too much text. */
const char *decoder_string(struct decoder *d, uint64_t index);
enum decode_error decoder_string_error(const struct decoder *d);

/* The decode_error for an -errno of the profile or of a table. */
enum decode_error decoder_errno(int err);

/* ---- the tables, in decode_tables.c */

decoder_entry decode_mapping, decode_function;
decoder_entry decode_location; /* after every mapping and function */
decoder_entry decode_sample;   /* after every location and sample type */

#endif

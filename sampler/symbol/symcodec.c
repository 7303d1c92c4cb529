/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/symcodec.h"

#include "pprof/codec/wire.h"
#include "pprof/table/array.h"
#include "pprof/table/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, FLAG_LINES = 1, FLAG_INLINES = 2, FLAG_DEBUG_FILE = 4, FLAG_SPLIT = 8, FLAGS_ALL = 15 };

/* Strings are numbered by first use. Input pointers need not be interned: texts are compared. */
struct encoder {
	uint8_t *bytes;
	size_t used, capacity;
	const char **strings; /* by number - 1 */
	size_t string_count, string_capacity;
	struct index by_text; /* ids: numbers */
	int error;
};

static void put_bytes(struct encoder *encoder, const void *bytes, size_t count)
{
	if (!encoder->error)
		encoder->error = array_reserve(&encoder->bytes, &encoder->capacity, encoder->used + count, 1);
	if (encoder->error)
		return;
	memcpy(encoder->bytes + encoder->used, bytes, count);
	encoder->used += count;
}

static void put_number(struct encoder *encoder, uint64_t number)
{
	uint8_t bytes[10];
	size_t count = 0;

	do {
		bytes[count] = number & 0x7f;
		number >>= 7;
		if (number)
			bytes[count] |= 0x80;
		count++;
	} while (number);
	put_bytes(encoder, bytes, count);
}

static uint32_t hash_of(const char *text)
{
	return index_fold(index_mix_bytes(index_seed(), text, strlen(text)));
}

/* The string's number; 0 for NULL and for a string that was not added. */
static uint32_t string_number(const struct encoder *encoder, const char *text)
{
	uint32_t hash = text ? hash_of(text) : 0, number = 0;
	size_t cursor = index_start(hash);

	while (text && (number = index_next(&encoder->by_text, hash, &cursor)))
		if (encoder->strings[number - 1] == text || strcmp(encoder->strings[number - 1], text) == 0)
			break;
	return number;
}

static void string_add(struct encoder *encoder, const char *text)
{
	if (encoder->error || !text || string_number(encoder, text))
		return;
	if (strlen(text) > SYMCODEC_STRING_MAX)
		encoder->error = -EINVAL;
	else if (array_reserve(&encoder->strings, &encoder->string_capacity, encoder->string_count + 1,
	             sizeof(*encoder->strings)) != 0 ||
	    index_add(&encoder->by_text, hash_of(text), (uint32_t)encoder->string_count + 1) != 0)
		encoder->error = -ENOMEM;
	else
		encoder->strings[encoder->string_count++] = text;
}

static void collect_strings(struct encoder *encoder, const struct symbol_result *results, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (uint32_t frame = 0; frame < results[i].frame_count; frame++) {
			string_add(encoder, results[i].frames[frame].name);
			string_add(encoder, results[i].frames[frame].system_name);
			string_add(encoder, results[i].frames[frame].file);
		}
	}
}

static void put_result(struct encoder *encoder, uint64_t step, const struct symbol_result *result)
{
	put_number(encoder, step);
	put_number(encoder, (uint64_t)result->frame_count * 2 + result->known);
	for (uint32_t i = 0; i < result->frame_count; i++) {
		const struct symbol_frame *frame = &result->frames[i];

		put_number(encoder, string_number(encoder, frame->name));
		put_number(encoder, string_number(encoder, frame->system_name));
		put_number(encoder, string_number(encoder, frame->file));
		put_number(encoder, frame->line);
		put_number(encoder, (uint64_t)frame->start_line * 2 + frame->inlined);
	}
}

static void put_all(struct encoder *encoder, const struct symbol_facts *facts, const uint64_t *vaddrs,
    const struct symbol_result *results, size_t n)
{
	uint8_t head[3] = {VERSION, (uint8_t)facts->source,
	    (uint8_t)((facts->has_lines ? FLAG_LINES : 0) | (facts->has_inlines ? FLAG_INLINES : 0) |
	        (facts->debug_file ? FLAG_DEBUG_FILE : 0) | (facts->split ? FLAG_SPLIT : 0))};

	put_bytes(encoder, head, sizeof(head));
	put_number(encoder, encoder->string_count);
	for (size_t i = 0; i < encoder->string_count; i++) {
		size_t length = strlen(encoder->strings[i]);

		put_number(encoder, length);
		put_bytes(encoder, encoder->strings[i], length + 1);
	}
	put_number(encoder, n);
	for (size_t i = 0; i < n; i++)
		put_result(encoder, vaddrs[i] - (i ? vaddrs[i - 1] : 0), &results[i]);
}

int symcodec_encode(const struct symbol_facts *facts, const uint64_t *vaddrs,
    const struct symbol_result *results, size_t n, uint8_t **bytes, size_t *byte_count)
{
	struct encoder encoder = {0};

	for (size_t i = 0; i < n; i++)
		if (results[i].frame_count > SYMBOL_FRAMES_MAX || (i > 0 && vaddrs[i] <= vaddrs[i - 1]))
			return -EINVAL;
	collect_strings(&encoder, results, n);
	put_all(&encoder, facts, vaddrs, results, n);
	index_fini(&encoder.by_text);
	free(encoder.strings);
	if (encoder.error) {
		free(encoder.bytes);
		return encoder.error;
	}
	*bytes = encoder.bytes;
	*byte_count = encoder.used;
	return 0;
}

struct decoder {
	struct wire left;
	const char **strings; /* [0] is NULL */
	uint64_t string_count;
	bool bad;
};

static uint64_t get_number(struct decoder *decoder, uint64_t largest)
{
	uint64_t number;

	if (wire_varint(&decoder->left, &number) && number <= largest)
		return number;
	decoder->bad = true;
	return 0;
}

static const char *get_string(struct decoder *decoder)
{
	return decoder->strings[get_number(decoder, decoder->string_count)];
}

static void get_frame(struct decoder *decoder, struct symbol_frame *frame)
{
	uint64_t start_line;

	frame->name = get_string(decoder);
	frame->system_name = get_string(decoder);
	frame->file = get_string(decoder);
	frame->line = (uint32_t)get_number(decoder, UINT32_MAX);
	start_line = get_number(decoder, 2 * (uint64_t)UINT32_MAX + 1);
	frame->start_line = (uint32_t)(start_line / 2);
	frame->inlined = start_line & 1;
	if (!frame->name || !frame->system_name || frame->name[0] == '\0')
		decoder->bad = true;
}

/* One pass over all addresses. Without each() the pass only checks them. */
static int get_results(struct decoder *decoder, symcodec_each_fn *each, void *arg)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	uint64_t left = get_number(decoder, UINT64_MAX), vaddr = 0;

	for (bool first = true; left > 0 && !decoder->bad; left--, first = false) {
		uint64_t step = get_number(decoder, UINT64_MAX - vaddr);
		uint64_t head = get_number(decoder, 2 * SYMBOL_FRAMES_MAX + 1);
		struct symbol_result result = {frames, (uint32_t)(head / 2), head & 1};
		int stop;

		vaddr += step;
		if (step == 0 && !first)
			decoder->bad = true;
		for (uint32_t i = 0; i < result.frame_count && !decoder->bad; i++)
			get_frame(decoder, &frames[i]);
		if (decoder->bad)
			break;
		if (result.frame_count > 0 && frames[result.frame_count - 1].inlined)
			decoder->bad = true;
		if (decoder->bad || !each)
			continue;
		stop = each(arg, vaddr, &result);
		if (stop)
			return stop;
	}
	return decoder->bad || wire_left(&decoder->left) ? -EBADMSG : 0;
}

static int get_strings(struct decoder *decoder)
{
	/* A string takes two bytes at least, so the table is in proportion to the input. */
	decoder->string_count = get_number(decoder, wire_left(&decoder->left) / 2);
	decoder->strings = calloc(decoder->string_count + 1, sizeof(*decoder->strings));
	if (!decoder->strings)
		return -ENOMEM;
	for (uint64_t i = 1; i <= decoder->string_count && !decoder->bad; i++) {
		uint64_t length = get_number(decoder, SYMCODEC_STRING_MAX);

		if (length >= wire_left(&decoder->left) ||
		    memchr(decoder->left.at, '\0', length + 1) != decoder->left.at + length)
			return -EBADMSG;
		decoder->strings[i] = (const char *)decoder->left.at;
		decoder->left.at += length + 1;
	}
	return decoder->bad ? -EBADMSG : 0;
}

int symcodec_decode(
    const uint8_t *bytes, size_t byte_count, struct symbol_facts *facts, symcodec_each_fn *each, void *arg)
{
	struct decoder decoder = {.left = {bytes + 3, bytes + byte_count}};
	struct wire results;
	int error;

	if (byte_count < 3 || bytes[0] != VERSION || bytes[1] > SYMBOL_DWARF || (bytes[2] & ~FLAGS_ALL))
		return -EBADMSG;
	*facts = (struct symbol_facts){.source = bytes[1],
	    .has_lines = bytes[2] & FLAG_LINES,
	    .has_inlines = bytes[2] & FLAG_INLINES,
	    .debug_file = bytes[2] & FLAG_DEBUG_FILE,
	    .split = bytes[2] & FLAG_SPLIT};
	error = get_strings(&decoder);
	results = decoder.left;
	if (!error)
		error = get_results(&decoder, NULL, NULL);
	if (!error) {
		decoder.left = results;
		error = get_results(&decoder, each, arg);
	}
	free(decoder.strings);
	return error;
}

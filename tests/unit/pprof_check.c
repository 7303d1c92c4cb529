/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One good heap profile, and for every rule the same profile spoilt in that one way: some top-level fields
 * left out, some appended (protobuf merges what is concatenated).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pprof/check/check.h"
#include "pprof/codec/decode.h"
#include "pprof/codec/wire.h"
#include "pprof/model/schema.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "tests/unit/pprof_good.h"

/* In a piece: the index of the first appended string, the id after the last of its table. */
#define NEW ((uint64_t)1 << 40)

struct piece {
	enum { END, MESSAGE, NUMBER, TEXT } kind;
	uint32_t field;
	const uint64_t *pairs;
	uint64_t number;
	const char *text;
	size_t len;
};

#define PIECES(...) ((const struct piece[]){__VA_ARGS__, {.kind = END}})
#define MESSAGE(f, ...)                                                  \
	{                                                                \
		.kind = MESSAGE, .field = f, .pairs = PAIRS(__VA_ARGS__) \
	}
#define NUMBER(f, n)                                    \
	{                                               \
		.kind = NUMBER, .field = f, .number = n \
	}
#define TEXT(f, t)                                                        \
	{                                                                 \
		.kind = TEXT, .field = f, .text = t, .len = sizeof(t) - 1 \
	}

/* What the level says: 'e'rror, 'w'arning or '-' nothing. */
struct spoilt {
	const char *message; /* part of the finding */
	char foreign, strict, heap;
	uint32_t left_out; /* a field, or 0 */
	const struct piece *appended;
};

/*
 * The good profile (tests/unit/pprof_bytes.h) has 4 types, 2 mappings [0x400000, 0x500000) and [0x7f0000,
 * 0x800000), functions 1 to 4, locations 1 (0x400020, two lines), 2 (0x400010), 3 (0x7f0010, no file name),
 * samples (1 2) and (3 2). A sample's packed values are in the texts: "\4" is 4.
 */
#define VALUES "\x12\4\1\1\1\1"
static const struct spoilt cases[] = {
    /* the top level */
    {"unknown field 16", 'w', 'e', 'e', 0, PIECES(NUMBER(16, 1))},
    {"doc_url is set", 'w', 'e', 'e', 0, PIECES(NUMBER(PROFILE_DOC_URL, 1))},
    {"field 12 has the wrong wire type", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_PERIOD, "x"))},
    {"field 2 has the wrong wire type", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_SAMPLE, 1))},
    {"time_nanos comes twice", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_TIME_NANOS, 1))},
    {"field 12 comes twice", '-', 'e', 'e', 0, PIECES(NUMBER(PROFILE_PERIOD, 1))},
    {"no time_nanos", '-', 'e', 'e', PROFILE_TIME_NANOS, NULL},
    {"time or duration is negative", '-', 'e', 'e', 0, PIECES(NUMBER(PROFILE_DURATION_NANOS, UINT64_MAX))},
    {"duration_nanos is set", '-', '-', 'e', 0, PIECES(NUMBER(PROFILE_DURATION_NANOS, 1))},
    {"no period_type", 'w', 'e', 'e', PROFILE_PERIOD_TYPE, NULL},
    {"period_type is not space/bytes", '-', '-', 'e', PROFILE_PERIOD_TYPE,
        PIECES(MESSAGE(PROFILE_PERIOD_TYPE, VALUE_TYPE_TYPE, 1, VALUE_TYPE_UNIT, 2))},
    {"period is negative", '-', 'e', 'e', PROFILE_PERIOD, PIECES(NUMBER(PROFILE_PERIOD, UINT64_MAX))},
    {"period is not at least 1", '-', '-', 'e', PROFILE_PERIOD, NULL},
    {"no comment", '-', 'w', 'w', PROFILE_COMMENT, NULL},
    {"comments are packed", 'w', 'e', 'e', 0, PIECES(TEXT(PROFILE_COMMENT, "\1"))},
    {"a comment is empty", '-', 'e', 'e', 0, PIECES(NUMBER(PROFILE_COMMENT, 0))},
    {"comment: damaged number", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_COMMENT, "\x80"))},
    {"Parca executableInfo", '-', 'e', 'e', 0,
        PIECES(NUMBER(PROFILE_COMMENT, NEW), TEXT(PROFILE_STRING_TABLE, "executableInfo=1;2"))},
    {"drop_frames: lookaround", '-', 'e', 'e', PROFILE_DROP_FRAMES,
        PIECES(NUMBER(PROFILE_DROP_FRAMES, NEW), TEXT(PROFILE_STRING_TABLE, "a(?!b)"))},
    {"default_sample_type is none", '-', 'e', 'e', PROFILE_DEFAULT_SAMPLE_TYPE,
        PIECES(NUMBER(PROFILE_DEFAULT_SAMPLE_TYPE, 2))},
    {"default_sample_type is neither", '-', '-', 'e', PROFILE_DEFAULT_SAMPLE_TYPE,
        PIECES(NUMBER(PROFILE_DEFAULT_SAMPLE_TYPE, 1))},

    {"field 6 has the wrong wire type", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_STRING_TABLE, 0))},
    {"field 11 has the wrong wire type", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_PERIOD_TYPE, 0))},
    {"field 1 has the wrong wire type", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_SAMPLE_TYPE, 0))},
    {"field 3 has the wrong wire type", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_MAPPING, 0))},
    {"field 4 has the wrong wire type", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_LOCATION, 0))},
    {"field 5 has the wrong wire type", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_FUNCTION, 0))},
    {"period_type 1: a field has the wrong wire type", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_PERIOD_TYPE, "\x0a\0"))},
    {"period_type: string index", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_PERIOD_TYPE, VALUE_TYPE_TYPE, NEW))},
    {"period_type's unit: string index", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_PERIOD_TYPE, VALUE_TYPE_UNIT, NEW))},
    {"drop_frames: string index", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_DROP_FRAMES, NEW))},
    {"keep_frames: string index", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_KEEP_FRAMES, NEW))},
    {"doc_url: string index", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_DOC_URL, NEW))},
    {"default_sample_type: string index", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_DEFAULT_SAMPLE_TYPE, NEW))},
    {"comment: string index", 'e', 'e', 'e', 0, PIECES(NUMBER(PROFILE_COMMENT, NEW))},

    /* sample types */
    {"sample type 5: damaged bytes", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE_TYPE, "\x08"))},
    {"sample type's unit: string index", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_SAMPLE_TYPE, VALUE_TYPE_UNIT, NEW))},
    {"no sample types", 'e', 'e', 'e', PROFILE_SAMPLE_TYPE, NULL},
    {"5 sample types", 'w', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_SAMPLE_TYPE, VALUE_TYPE_TYPE, 2, VALUE_TYPE_UNIT, 2))},
    {"have the same name", '-', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_SAMPLE_TYPE, VALUE_TYPE_TYPE, 1, VALUE_TYPE_UNIT, 2))},
    {"'-' in its name", 'w', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_SAMPLE_TYPE, VALUE_TYPE_TYPE, NEW, VALUE_TYPE_UNIT, 2),
            TEXT(PROFILE_STRING_TABLE, "alloc-space"))},
    {"no name or no unit", '-', 'e', 'e', 0, PIECES(MESSAGE(PROFILE_SAMPLE_TYPE, VALUE_TYPE_TYPE, 2))},
    {"sample type 1 is not alloc_objects/count", '-', '-', 'e', PROFILE_SAMPLE_TYPE,
        PIECES(MESSAGE(PROFILE_SAMPLE_TYPE, VALUE_TYPE_TYPE, 3, VALUE_TYPE_UNIT, 4))},
    {"sample type: string index", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_SAMPLE_TYPE, VALUE_TYPE_TYPE, NEW))},
    {"unknown field 3 (pprof-format", 'w', 'e', 'e', 0, PIECES(MESSAGE(PROFILE_SAMPLE_TYPE, 3, 1))},

    /* strings */
    {"no string table", 'e', 'e', 'e', PROFILE_STRING_TABLE, NULL},
    {"string 0 is not empty", 'e', 'e', 'e', PROFILE_STRING_TABLE, PIECES(TEXT(PROFILE_STRING_TABLE, "x"))},
    {"are equal", '-', 'e', 'e', 0, PIECES(TEXT(PROFILE_STRING_TABLE, "bytes"))},
    {"strings 0 and", '-', 'e', 'e', 0, PIECES(TEXT(PROFILE_STRING_TABLE, ""))},
    {"is not UTF-8", 'w', 'e', 'e', 0, PIECES(TEXT(PROFILE_STRING_TABLE, "x\xff"))},
    {"contains a NUL", '-', 'e', 'e', 0, PIECES(TEXT(PROFILE_STRING_TABLE, "x\0y"))},
    {"nothing uses it", '-', 'e', 'e', 0, PIECES(TEXT(PROFILE_STRING_TABLE, "unused"))},

    /* mappings */
    {"mapping 3 has the reserved id 0", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_FILENAME, 1))},
    {"mapping 3: id 2 is used twice", 'e', 'e', 'e', 0, PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 2))},
    {"mapping 3 has id 7: not sequential", 'w', 'e', 'e', 0, PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 7))},
    {"mapping 3: no sample uses it", '-', 'e', 'e', 0, PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 3))},
    {"mapping 3 has no file name", '-', 'w', 'w', 0, PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 3))},
    {"start is not below limit", '-', 'e', 'e', 0,
        PIECES(MESSAGE(
            PROFILE_MAPPING, MAPPING_ID, 3, MAPPING_MEMORY_START, 0x2000, MAPPING_MEMORY_LIMIT, 0x2000))},
    {"not aligned to pages", '-', 'w', 'w', 0,
        PIECES(MESSAGE(
            PROFILE_MAPPING, MAPPING_ID, 3, MAPPING_MEMORY_START, 0x2001, MAPPING_MEMORY_LIMIT, 0x3000))},
    {"(deleted)", '-', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 3, MAPPING_FILENAME, NEW),
            TEXT(PROFILE_STRING_TABLE, "/bin/x (deleted)"))},
    {"not lowercase hexadecimal", '-', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 3, MAPPING_BUILD_ID, NEW),
            TEXT(PROFILE_STRING_TABLE, "ABCD"))},
    {"mapping's file name: string index", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 3, MAPPING_FILENAME, NEW))},
    {"mapping 2: has_functions, but a location has none", 'w', 'e', 'e', 0,
        PIECES(
            MESSAGE(PROFILE_LOCATION, LOCATION_ID, 4, LOCATION_MAPPING_ID, 2, LOCATION_ADDRESS, 0x7f0020))},
    {"mapping 3: functions, but not has_functions", 'w', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 3),
            TEXT(PROFILE_LOCATION, "\x08\x04\x10\x03\x18\x05\x22\x02\x08\x01"))},
    {"mapping 3: other flags without has_functions", '-', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 3, MAPPING_HAS_FILENAMES, 1))},
    {"mapping 3: file names, lines or inlined frames without their flag", '-', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 3, MAPPING_HAS_FUNCTIONS, 1),
            TEXT(PROFILE_LOCATION, "\x08\x04\x10\x03\x18\x05\x22\x02\x08\x01"))},
    {"no mapping: readers take", '-', '-', 'e', PROFILE_MAPPING, NULL},

    {"mapping's build id: string index", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_MAPPING, MAPPING_ID, 3, MAPPING_BUILD_ID, NEW))},
    {"mapping 3: damaged bytes", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_MAPPING, "\x08\3\x10"))},

    /* functions */
    {"function's name: string index", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 5, FUNCTION_NAME, NEW))},
    {"function's system name: string index", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 5, FUNCTION_SYSTEM_NAME, NEW))},
    {"function's file name: string index", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 5, FUNCTION_FILENAME, NEW))},
    {"function 5: damaged bytes", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_FUNCTION, "\x08\5\x10"))},
    {"function 5 has the reserved id 0", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_NAME, 1))},
    {"function 5: id 1 is used twice", 'e', 'e', 'e', 0, PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 1))},
    {"function 5 has id 9: not sequential", 'w', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 9))},
    {"function 5 has no name", '-', 'e', 'e', 0, PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 5))},
    {"function 5 has no system name", '-', 'w', 'w', 0, PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 5))},
    {"function 5: no location uses it", '-', 'e', 'e', 0, PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 5))},
    {"start line is negative", '-', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 5, FUNCTION_START_LINE, UINT64_MAX))},
    {"file name is not absolute", '-', 'w', 'w', 0,
        PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 5, FUNCTION_FILENAME, 4))},
    {"function 5: field 2 comes twice", '-', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_FUNCTION, FUNCTION_ID, 5, FUNCTION_NAME, 1, FUNCTION_NAME, 1))},

    /* locations */
    {"location 4 has the reserved id 0", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_LOCATION, LOCATION_ADDRESS, 1))},
    {"location 4: id 1 is used twice", 'e', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_LOCATION, LOCATION_ID, 1, LOCATION_ADDRESS, 1))},
    {"location 4 has id 5: not sequential", 'w', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_LOCATION, LOCATION_ID, 5, LOCATION_ADDRESS, 1))},
    {"location 4: address is 0", 'w', 'e', 'e', 0, PIECES(MESSAGE(PROFILE_LOCATION, LOCATION_ID, 4))},
    {"have the same address", 'w', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_LOCATION, LOCATION_ID, 4, LOCATION_ADDRESS, 0x400010))},
    {"location 4: its mapping does not exist", 'w', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_LOCATION, LOCATION_ID, 4, LOCATION_MAPPING_ID, 9))},
    {"location 4: address outside its mapping", '-', 'e', 'e', 0,
        PIECES(
            MESSAGE(PROFILE_LOCATION, LOCATION_ID, 4, LOCATION_MAPPING_ID, 1, LOCATION_ADDRESS, 0x500000))},
    {"location 4: no sample uses it", '-', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_LOCATION, LOCATION_ID, 4, LOCATION_ADDRESS, 1))},
    {"location 4: line with nil function (id 9)", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_LOCATION, "\x08\x04\x18\x05\x22\x02\x08\x09"))},
    {"location 4: line with nil function (id 0)", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_LOCATION, "\x08\x04\x18\x05\x22\x00"))},
    {"location 4: negative line or column", '-', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_LOCATION,
            "\x08\x04\x18\x05\x22\x0d\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))},
    {"location 4: unknown field 6", 'w', 'e', 'e', 0,
        PIECES(MESSAGE(PROFILE_LOCATION, LOCATION_ID, 4, 6, 1))},
    {"location 4: damaged bytes", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_LOCATION, "\x08"))},
    {"location 4: field 3 has the wrong wire type", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_LOCATION, "\x08\x04\x1a\x00"))},

    {"line of location 4: a field has the wrong wire type", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_LOCATION, "\x08\x04\x18\x05\x22\x04\x08\x01\x12\x00"))},
    {"line of location 4: a field has the wrong wire type", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_LOCATION, "\x08\x04\x18\x05\x20\x01"))},

    /* samples; location ids in "\x0a", values in "\x12", labels in "\x1a" */
    {"sample 3 has nil location (id 4)", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\4" VALUES))},
    {"sample 3 has nil location (id 0)", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE, "\x08\0" VALUES))},
    {"sample 3 has no stack", '-', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE, VALUES))},
    {"sample 3 has 3 values for 4 types", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1\x12\3\1\1\1"))},
    {"sample 3 has 5 values for 4 types", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1\x12\5\1\1\1\1\1"))},
    {"sample 3: all values are 0", '-', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1\x12\4\0\0\0\0"))},
    {"sample 3: negative value", 'w', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\3\1\1\1"))},
    {"sample 3: unknown field 4", 'w', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x20\1"))},
    {"sample 3: damaged bytes", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x12\x09"))},
    {"sample 3: damaged locations", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\x80" VALUES))},
    {"sample 3: damaged values", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1\x15\1\1\1\1"))},
    {"sample 3: damaged values", 'e', 'e', 'e', 0, PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1\x12\1\x80"))},
    {"sample 4: same stack and labels", '-', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES), TEXT(PROFILE_SAMPLE, "\x08\1" VALUES))},
    {"sample 4: same stack and labels", '-', 'e', 'e', 0, /* in another order */
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\4\x08\1\x10\1\x1a\4\x08\2\x10\1"),
            TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\4\x08\2\x10\1\x1a\4\x08\1\x10\1"))},
    {"1 samples without a label bytes", '-', '-', 'w', 0, PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES))},
    {"sample 3: more in use than was allocated", '-', '-', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1\x12\4\1\1\1\2"))},
    {"sample 3: bytes without objects", '-', '-', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1\x12\4\0\1\0\0"))},
    {"sample type 2: total beyond 2^53", 'w', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1\x12\x0b\1\x80\x80\x80\x80\x80\x80\x80\x10\0\0"))},

    /* labels: key 1 is alloc_objects, 2 count, 4 bytes */
    {"sample 3: a label has both a string and a number", '-', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\6\x08\1\x10\1\x18\1"))},
    {"sample 3: a label without a value", '-', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\2\x08\1"))},
    {"sample 3: two labels with one key", '-', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\4\x08\1\x18\1\x1a\4\x08\1\x18\2"))},
    {"sample 3: label bytes is not a number of bytes", '-', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\4\x08\4\x18\1"))},
    {"sample 3: label key does not match", 'w', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\2\x18\1"))},
    {"label's key: string index", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\4\x08\x7f\x18\1"))},
    {"label's string: string index", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\4\x08\1\x10\x7f"))},
    {"label's unit: string index", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\6\x08\1\x18\1\x20\x7f"))},
    {"label of sample 3: a field has the wrong wire type", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x18\1"))},
    {"label of sample 3: damaged bytes", 'e', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\1\x08"))},
    {"is the key of string and of number labels", '-', 'e', 'e', 0,
        PIECES(TEXT(PROFILE_SAMPLE, "\x0a\1\1" VALUES "\x1a\4\x08\1\x18\1"),
            TEXT(PROFILE_SAMPLE, "\x0a\1\2" VALUES "\x1a\4\x08\1\x10\1"))},
};

static void append(struct bytes *b, const struct piece *piece, uint64_t string_count)
{
	uint64_t pairs[16] = {0};
	size_t i;

	switch (piece->kind) {
	case MESSAGE:
		for (i = 0; piece->pairs[i]; i += 2) {
			pairs[i] = piece->pairs[i];
			pairs[i + 1] = piece->pairs[i + 1] == NEW ? string_count : piece->pairs[i + 1];
		}
		put_message(b, piece->field, pairs);
		break;
	case NUMBER:
		put_number(b, piece->field, piece->number == NEW ? string_count : piece->number);
		break;
	default:
		put_bytes(b, piece->field, piece->text, piece->len);
	}
}

static void spoil(struct bytes *b, const struct spoilt *spoilt)
{
	struct bytes good = {.len = 0};
	const struct piece *piece;
	struct wire_field field;
	uint64_t string_count;
	struct wire w;
	const uint8_t *start;

	encode_good(&good, &string_count);
	w = (struct wire){good.data, good.data + good.len};
	for (start = w.at; wire_next(&w, &field) > 0; start = w.at)
		if (field.number != spoilt->left_out)
			put(b, start, (size_t)(w.at - start));
	for (piece = spoilt->appended; piece && piece->kind != END; piece++)
		append(b, piece, string_count);
}

static void assert_severity(const struct bytes *b, enum check_level level, const char *message, char severity)
{
	struct check_report report;
	char found;

	check_zipped(b, level, &report);
	found = severity_in(&report, message);
	if (found != severity)
		print_message("\"%s\" at level %d\n", message, level);
	assert_int_equal(found, severity);
	check_report_fini(&report);
}

static void a_good_profile_has_no_findings(void **state)
{
	struct bytes b = {.len = 0};
	struct check_report report;
	uint64_t string_count;

	encode_good(&b, &string_count);
	check_zipped(&b, CHECK_HEAP, &report);
	assert_int_equal(report.finding_count, 0);
	check_report_fini(&report);
}

static void each_rule_is_seen_at_its_levels(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct bytes b = {.len = 0};

		spoil(&b, &cases[i]);
		assert_severity(&b, CHECK_FOREIGN, cases[i].message, cases[i].foreign);
		assert_severity(&b, CHECK_STRICT, cases[i].message, cases[i].strict);
		assert_severity(&b, CHECK_HEAP, cases[i].message, cases[i].heap);
	}
}

/* A reader of ours accepts what the reference reader does: what has no error at the foreign level. */
static void the_decoder_agrees_with_the_checker(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct bytes b = {.len = 0};
		struct check_report report;
		struct profile *p;
		enum decode_error error;

		spoil(&b, &cases[i]);
		check_zipped(&b, CHECK_FOREIGN, &report);
		error = decode_profile(b.data, b.len, DECODE_MAX_BYTES, &p);
		if (!error)
			profile_free(p);
		if (!error != !report.error_count)
			print_message("\"%s\": %s\n", cases[i].message, decode_error_string(error));
		assert_int_equal(!error, !report.error_count);
		check_report_fini(&report);
	}
}

/* ---- heaptap check */

/* Runs the command on a file with these bytes; what it prints is in text. Returns its exit status. */
static int command_run(const struct bytes *b, bool strict, char *text, size_t text_bytes)
{
	char path[] = "/tmp/heaptap-check-XXXXXX", printed[] = "/tmp/heaptap-check-XXXXXX";
	char *operands[] = {path, NULL};
	struct options options = {.operands = operands, .operand_count = 1};
	int file = mkstemp(path), out = mkstemp(printed), saved = dup(STDOUT_FILENO), status;
	uint8_t *zipped;
	size_t len;
	ssize_t n;

	options.read.strict = strict;
	options.read.memory_max_bytes = MEMORY_MAX_BYTES_DEFAULT;
	assert_int_equal(gzip_encode(b->data, b->len, 1, &zipped, &len), 0);
	assert_int_equal(write(file, zipped, len), len);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	status = check_run(&options);
	dup2(saved, STDOUT_FILENO);
	n = pread(out, text, text_bytes - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	if (*text)
		assert_memory_equal(text, path, strlen(path));
	unlink(path);
	unlink(printed);
	close(file);
	close(out);
	close(saved);
	free(zipped);
	return status;
}

static void the_command_prints_each_fault(void **state)
{
	static char text[CHECK_FINDINGS_MAX * (CHECK_MESSAGE_BYTES + 64)];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (int strict = 0; strict < 2; strict++) {
			struct bytes b = {.len = 0};
			char severity = strict ? cases[i].strict : cases[i].foreign;
			struct check_report report;
			int status;

			spoil(&b, &cases[i]);
			check_zipped(&b, strict ? CHECK_STRICT : CHECK_FOREIGN, &report);
			status = command_run(&b, strict, text, sizeof(text));
			assert_int_equal(status, report.error_count ? 1 : 0);
			assert_int_equal(*text != '\0', report.error_count != 0);
			if ((strstr(text, cases[i].message) != NULL) != (severity == 'e'))
				print_message("\"%s\" is not: %s\n", cases[i].message, text);
			assert_int_equal(strstr(text, cases[i].message) != NULL, severity == 'e');
			check_report_fini(&report);
		}
	}
}

static void the_command_is_silent_about_a_good_profile(void **state)
{
	struct bytes b = {.len = 0};
	uint64_t string_count;
	char text[256];

	encode_good(&b, &string_count);
	for (int strict = 0; strict < 2; strict++) {
		assert_int_equal(command_run(&b, strict, text, sizeof(text)), 0);
		assert_string_equal(text, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_good_profile_has_no_findings),
	    cmocka_unit_test(each_rule_is_seen_at_its_levels),
	    cmocka_unit_test(the_decoder_agrees_with_the_checker),
	    cmocka_unit_test(the_command_prints_each_fault),
	    cmocka_unit_test(the_command_is_silent_about_a_good_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

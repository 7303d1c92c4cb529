/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "pprof/codec/wire.h"
#include "pprof/model/schema.h"
#include "pprof/profile.pb-c.h"
#include "tests/unit/pprof_bytes.h"

static struct wire wire_of(const struct bytes *b)
{
	return (struct wire){b->data, b->data + b->len};
}

static void varints_read_back(void **state)
{
	static const uint64_t values[] = {0, 1, 127, 128, 300, 1u << 28, UINT32_MAX, 1ULL << 63, UINT64_MAX};
	struct bytes b = {.len = 0};
	struct wire w;
	uint64_t value;
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(*values); i++)
		put_varint(&b, values[i]);
	w = wire_of(&b);
	for (i = 0; i < sizeof(values) / sizeof(*values); i++) {
		assert_true(wire_varint(&w, &value));
		assert_true(value == values[i]);
	}
	assert_false(wire_varint(&w, &value));
	assert_int_equal(wire_left(&w), 0);
}

static void damaged_varints_are_refused(void **state)
{
	static const char *const damaged[] = {
	    "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff", /* end early */
	    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",     /* 65 bits */
	    "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", /* 11 bytes */
	};
	uint64_t value;
	size_t i;

	for (i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
		struct bytes b = {.len = 0};
		struct wire w;

		put(&b, damaged[i], strlen(damaged[i]));
		w = wire_of(&b);
		assert_false(wire_varint(&w, &value));
	}
}

static void each_wire_type_is_read(void **state)
{
	struct bytes b = {.len = 0};
	struct wire_field field;
	struct wire w;

	put_number(&b, 1, 150);
	put_varint(&b, 2 << 3 | WIRE_FIXED64);
	put(&b, "\1\2\3\4\5\6\7\x08", 8);
	put_varint(&b, 3 << 3 | WIRE_FIXED32);
	put(&b, "\1\2\3\x84", 4);
	put_string(&b, 536870911, "text");
	w = wire_of(&b);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_true(field.number == 1 && field.type == WIRE_VARINT && field.value == 150);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_true(field.number == 2 && field.type == WIRE_FIXED64 && field.value == 0x0807060504030201);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_true(field.number == 3 && field.type == WIRE_FIXED32 && field.value == 0x84030201);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_true(field.number == 536870911 && field.type == WIRE_BYTES && wire_left(&field.bytes) == 4);
	assert_memory_equal(field.bytes.at, "text", 4);
	assert_int_equal(wire_next(&w, &field), 0);
}

static void what_is_no_field_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} damaged[] = {
	    {"\x00\x01", 2},                 /* field 0 */
	    {"\x80\x80\x80\x80\x10\x01", 6}, /* field 2^29 */
	    {"\x0b", 1}, {"\x0c", 1},        /* group */
	    {"\x0e", 1}, {"\x0f", 1},        /* no such type */
	    {"\x08", 1},                     /* no value */
	    {"\x09\1\2\3\4\5\6\7", 8}, {"\x0d\1\2\3", 4},
	    {"\x0a\x05"
	     "abcd",
	        6},
	    {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* a length of 2^64 - 1 */
	};
	size_t i;

	for (i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
		struct bytes b = {.len = 0};
		struct wire_field field;
		struct wire w;

		put(&b, damaged[i].bytes, damaged[i].len);
		w = wire_of(&b);
		assert_int_equal(wire_next(&w, &field), -EBADMSG);
	}
}

static void repeated_numbers_come_packed_or_not(void **state)
{
	struct bytes b = {.len = 0};
	struct wire_field field;
	struct wire w;
	uint64_t value;

	put_bytes(&b, 1, "\x01\x02\xac\x02", 4);
	put_number(&b, 1, 7);
	put_bytes(&b, 1, "", 0);
	put_bytes(&b, 1, "\x01\x80", 2);
	w = wire_of(&b);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_true(wire_repeated(&field, &value) == 1 && value == 1);
	assert_true(wire_repeated(&field, &value) == 1 && value == 2);
	assert_true(wire_repeated(&field, &value) == 1 && value == 300);
	assert_int_equal(wire_repeated(&field, &value), 0);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_true(wire_repeated(&field, &value) == 1 && value == 7);
	assert_int_equal(wire_repeated(&field, &value), 0);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_int_equal(wire_repeated(&field, &value), 0);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_true(wire_repeated(&field, &value) == 1 && value == 1);
	assert_int_equal(wire_repeated(&field, &value), -EBADMSG);
}

static void a_message_of_numbers_reports_what_is_odd(void **state)
{
	struct bytes b = {.len = 0};
	struct wire_oddities odd = {0};
	struct wire_field field;
	uint64_t numbers[4];
	struct wire w;

	put_message(&b, 1, PAIRS(1, 5, 3, 6, 3, 7, 9, 1));
	put_number(&b, 2, 1);
	w = wire_of(&b);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_int_equal(wire_numbers(&field, numbers, 4, &odd), 0);
	assert_true(numbers[1] == 5 && numbers[2] == 0 && numbers[3] == 7);
	assert_int_equal(odd.unknown, 9);
	assert_int_equal(odd.repeated, 3);
	assert_int_equal(wire_next(&w, &field), 1);
	assert_int_equal(wire_numbers(&field, numbers, 4, NULL), -EPROTO);
}

/* schema.h is written by hand; the generated descriptors come from profile.proto. */
static void the_schema_is_the_generated_one(void **state)
{
	static const struct {
		const ProtobufCMessageDescriptor *message;
		const char *field;
		unsigned int number, count;
	} fields[] = {
#define FIELD(message, name, number, count) \
	{&perftools__profiles__##message##__descriptor, name, number, count}
	    FIELD(profile, "sample_type", PROFILE_SAMPLE_TYPE, PROFILE_FIELD_COUNT),
	    FIELD(profile, "sample", PROFILE_SAMPLE, PROFILE_FIELD_COUNT),
	    FIELD(profile, "mapping", PROFILE_MAPPING, PROFILE_FIELD_COUNT),
	    FIELD(profile, "location", PROFILE_LOCATION, PROFILE_FIELD_COUNT),
	    FIELD(profile, "function", PROFILE_FUNCTION, PROFILE_FIELD_COUNT),
	    FIELD(profile, "string_table", PROFILE_STRING_TABLE, PROFILE_FIELD_COUNT),
	    FIELD(profile, "drop_frames", PROFILE_DROP_FRAMES, PROFILE_FIELD_COUNT),
	    FIELD(profile, "keep_frames", PROFILE_KEEP_FRAMES, PROFILE_FIELD_COUNT),
	    FIELD(profile, "time_nanos", PROFILE_TIME_NANOS, PROFILE_FIELD_COUNT),
	    FIELD(profile, "duration_nanos", PROFILE_DURATION_NANOS, PROFILE_FIELD_COUNT),
	    FIELD(profile, "period_type", PROFILE_PERIOD_TYPE, PROFILE_FIELD_COUNT),
	    FIELD(profile, "period", PROFILE_PERIOD, PROFILE_FIELD_COUNT),
	    FIELD(profile, "comment", PROFILE_COMMENT, PROFILE_FIELD_COUNT),
	    FIELD(profile, "default_sample_type", PROFILE_DEFAULT_SAMPLE_TYPE, PROFILE_FIELD_COUNT),
	    FIELD(profile, "doc_url", PROFILE_DOC_URL, PROFILE_FIELD_COUNT),
	    FIELD(value_type, "type", VALUE_TYPE_TYPE, VALUE_TYPE_FIELD_COUNT),
	    FIELD(value_type, "unit", VALUE_TYPE_UNIT, VALUE_TYPE_FIELD_COUNT),
	    FIELD(sample, "location_id", SAMPLE_LOCATION_ID, SAMPLE_FIELD_COUNT),
	    FIELD(sample, "value", SAMPLE_VALUE, SAMPLE_FIELD_COUNT),
	    FIELD(sample, "label", SAMPLE_LABEL, SAMPLE_FIELD_COUNT),
	    FIELD(label, "key", LABEL_KEY, LABEL_FIELD_COUNT),
	    FIELD(label, "str", LABEL_STR, LABEL_FIELD_COUNT),
	    FIELD(label, "num", LABEL_NUM, LABEL_FIELD_COUNT),
	    FIELD(label, "num_unit", LABEL_NUM_UNIT, LABEL_FIELD_COUNT),
	    FIELD(mapping, "id", MAPPING_ID, MAPPING_FIELD_COUNT),
	    FIELD(mapping, "memory_start", MAPPING_MEMORY_START, MAPPING_FIELD_COUNT),
	    FIELD(mapping, "memory_limit", MAPPING_MEMORY_LIMIT, MAPPING_FIELD_COUNT),
	    FIELD(mapping, "file_offset", MAPPING_FILE_OFFSET, MAPPING_FIELD_COUNT),
	    FIELD(mapping, "filename", MAPPING_FILENAME, MAPPING_FIELD_COUNT),
	    FIELD(mapping, "build_id", MAPPING_BUILD_ID, MAPPING_FIELD_COUNT),
	    FIELD(mapping, "has_functions", MAPPING_HAS_FUNCTIONS, MAPPING_FIELD_COUNT),
	    FIELD(mapping, "has_filenames", MAPPING_HAS_FILENAMES, MAPPING_FIELD_COUNT),
	    FIELD(mapping, "has_line_numbers", MAPPING_HAS_LINE_NUMBERS, MAPPING_FIELD_COUNT),
	    FIELD(mapping, "has_inline_frames", MAPPING_HAS_INLINE_FRAMES, MAPPING_FIELD_COUNT),
	    FIELD(location, "id", LOCATION_ID, LOCATION_FIELD_COUNT),
	    FIELD(location, "mapping_id", LOCATION_MAPPING_ID, LOCATION_FIELD_COUNT),
	    FIELD(location, "address", LOCATION_ADDRESS, LOCATION_FIELD_COUNT),
	    FIELD(location, "line", LOCATION_LINE, LOCATION_FIELD_COUNT),
	    FIELD(location, "is_folded", LOCATION_IS_FOLDED, LOCATION_FIELD_COUNT),
	    FIELD(line, "function_id", LINE_FUNCTION_ID, LINE_FIELD_COUNT),
	    FIELD(line, "line", LINE_LINE, LINE_FIELD_COUNT),
	    FIELD(line, "column", LINE_COLUMN, LINE_FIELD_COUNT),
	    FIELD(function, "id", FUNCTION_ID, FUNCTION_FIELD_COUNT),
	    FIELD(function, "name", FUNCTION_NAME, FUNCTION_FIELD_COUNT),
	    FIELD(function, "system_name", FUNCTION_SYSTEM_NAME, FUNCTION_FIELD_COUNT),
	    FIELD(function, "filename", FUNCTION_FILENAME, FUNCTION_FIELD_COUNT),
	    FIELD(function, "start_line", FUNCTION_START_LINE, FUNCTION_FIELD_COUNT),
#undef FIELD
	};
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		const ProtobufCFieldDescriptor *field =
		    protobuf_c_message_descriptor_get_field_by_name(fields[i].message, fields[i].field);

		assert_non_null(field);
		assert_int_equal(field->id, fields[i].number);
		assert_int_equal(fields[i].message->n_fields, fields[i].count - 1);
	}
	assert_false(protobuf_c_message_descriptor_get_field(
	                 &perftools__profiles__profile__descriptor, PROFILE_COMMENT)
	                 ->flags &
	    PROTOBUF_C_FIELD_FLAG_PACKED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(varints_read_back),
	    cmocka_unit_test(damaged_varints_are_refused),
	    cmocka_unit_test(each_wire_type_is_read),
	    cmocka_unit_test(what_is_no_field_is_refused),
	    cmocka_unit_test(repeated_numbers_come_packed_or_not),
	    cmocka_unit_test(a_message_of_numbers_reports_what_is_odd),
	    cmocka_unit_test(the_schema_is_the_generated_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "pprof/codec/decode.h"
#include "pprof/codec/encode.h"
#include "pprof/codec/file.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/schema.h"
#include "tests/unit/pprof_bytes.h"

static const char GO_HEAP[] = "tests/readers/go_heap.pb.gz";

static int64_t total(const struct profile *p, size_t type)
{
	int64_t sum = 0;
	size_t i;

	for (i = 0; i < profile_sample_count(p); i++)
		sum += profile_sample(p, i).values[type];
	return sum;
}

/* Sum over the samples whose leaf is that function. */
static int64_t flat(const struct profile *p, const char *name, size_t type)
{
	int64_t sum = 0;
	size_t i;

	for (i = 0; i < profile_sample_count(p); i++) {
		struct profile_sample sample = profile_sample(p, i);
		struct profile_location leaf = profile_location(p, sample.locations[0]);

		if (!strcmp(profile_function(p, leaf.lines[0].function).name, name))
			sum += sample.values[type];
	}
	return sum;
}

/* What google/pprof prints for this file (tests/readers/oracle -func). */
static void a_profile_made_by_go_is_read(void **state)
{
	struct profile *p;
	uint8_t *data;
	size_t len;

	assert_int_equal(file_read(GO_HEAP, 1 << 20, &data, &len), 0);
	assert_int_equal(decode_profile(data, len, DECODE_MAX_BYTES, &p), DECODE_OK);
	free(data);
	assert_string_equal(profile_sample_type(p, 0).type, "alloc_objects");
	assert_string_equal(profile_sample_type(p, 3).unit, "bytes");
	assert_int_equal(total(p, 0), 1114);
	assert_int_equal(total(p, 1), 173912);
	assert_int_equal(total(p, 2), 108);
	assert_int_equal(total(p, 3), 106928);
	assert_int_equal(flat(p, "main.keep", 0), 1108);
	assert_int_equal(flat(p, "runtime.malg", 0), 3);
	assert_string_equal(profile_period_type(p).type, "space");
	assert_int_equal(profile_period(p), 1);
	profile_free(p);
}

/* A smallest profile with a sample, to be spoilt: strings 0 "", 1 "n", 2 "count"; ids as they come. */
struct parts {
	uint64_t mapping_id, function_id, location_id, location_mapping, line_function, sample_location;
	uint64_t type_string, value_count;
	const char *first_string;
};

static const struct parts good_parts = {7, 1ULL << 60, 99, 7, 1ULL << 60, 99, 1, 1, ""};

static void write_parts(struct bytes *b, const struct parts *parts)
{
	struct bytes location = {.len = 0}, sample = {.len = 0};
	uint64_t i;

	/* Strings last and samples before what they refer to: any order will do. */
	put_bytes(&sample, SAMPLE_LOCATION_ID, "", 0);
	put_number(&sample, SAMPLE_LOCATION_ID, parts->sample_location);
	for (i = 0; i < parts->value_count; i++)
		put_number(&sample, SAMPLE_VALUE, 5);
	put_bytes(b, PROFILE_SAMPLE, sample.data, sample.len);
	put_number(&location, LOCATION_ID, parts->location_id);
	put_number(&location, LOCATION_MAPPING_ID, parts->location_mapping);
	put_number(&location, LOCATION_ADDRESS, 0x1234);
	put_message(&location, LOCATION_LINE, PAIRS(LINE_FUNCTION_ID, parts->line_function, LINE_LINE, 3));
	put_bytes(b, PROFILE_LOCATION, location.data, location.len);
	put_message(b, PROFILE_FUNCTION, PAIRS(FUNCTION_ID, parts->function_id, FUNCTION_NAME, 1));
	put_message(b, PROFILE_MAPPING, PAIRS(MAPPING_ID, parts->mapping_id, MAPPING_MEMORY_LIMIT, 0x2000));
	put_message(b, PROFILE_SAMPLE_TYPE, PAIRS(VALUE_TYPE_TYPE, parts->type_string, VALUE_TYPE_UNIT, 2));
	put_string(b, PROFILE_STRING_TABLE, parts->first_string);
	put_string(b, PROFILE_STRING_TABLE, "n");
	put_string(b, PROFILE_STRING_TABLE, "count");
}

static enum decode_error decode(const struct bytes *b, struct profile **p)
{
	uint8_t *copy = malloc(b->len ? b->len : 1); /* its own block: a sanitizer sees a read beyond */
	enum decode_error error;

	assert_non_null(copy);
	memcpy(copy, b->data, b->len);
	error = decode_profile(copy, b->len, DECODE_MAX_BYTES, p);
	free(copy);
	return error;
}

static enum decode_error decode_error_of(const struct bytes *b)
{
	struct profile *p;
	enum decode_error error = decode(b, &p);

	if (!error)
		profile_free(p);
	return error;
}

static enum decode_error decode_parts(struct parts parts)
{
	struct bytes b = {.len = 0};

	write_parts(&b, &parts);
	return decode_error_of(&b);
}

static void ids_are_any_numbers_and_fields_in_any_order(void **state)
{
	struct bytes b = {.len = 0};
	struct profile *p;
	struct profile_location location;

	write_parts(&b, &good_parts);
	put_number(&b, 77, 1); /* unknown fields are skipped */
	put_string(&b, 78, "x");
	assert_int_equal(decode(&b, &p), DECODE_OK);
	assert_int_equal(profile_sample_count(p), 1);
	assert_int_equal(profile_sample(p, 0).values[0], 5);
	location = profile_location(p, profile_sample(p, 0).locations[0]);
	assert_true(location.address == 0x1234);
	assert_string_equal(profile_function(p, location.lines[0].function).name, "n");
	assert_int_equal(profile_mapping(p, location.mapping).limit, 0x2000);
	profile_free(p);
}

static void many_sparse_ids_are_found(void **state)
{
	static struct bytes b;
	struct profile *p;
	uint64_t i;

	put_message(&b, PROFILE_SAMPLE_TYPE, PAIRS(VALUE_TYPE_TYPE, 1, VALUE_TYPE_UNIT, 1));
	put_string(&b, PROFILE_STRING_TABLE, "");
	put_string(&b, PROFILE_STRING_TABLE, "n");
	for (i = 1; i <= 200; i++) {
		uint64_t id = i % 2 ? i : i * 1000003; /* some in their place, some not */

		put_message(&b, PROFILE_LOCATION, PAIRS(LOCATION_ID, id, LOCATION_ADDRESS, i));
		put_message(&b, PROFILE_SAMPLE, PAIRS(SAMPLE_LOCATION_ID, id, SAMPLE_VALUE, i));
	}
	assert_int_equal(decode(&b, &p), DECODE_OK);
	assert_int_equal(profile_sample_count(p), 200);
	for (i = 0; i < 200; i++) {
		struct profile_sample sample = profile_sample(p, i);

		assert_true((uint64_t)sample.values[0] == profile_location(p, sample.locations[0]).address);
	}
	profile_free(p);
}

static void each_kind_of_damage_has_its_error(void **state)
{
	struct parts parts = good_parts;

	assert_int_equal(decode_parts(parts), DECODE_OK);
#define SPOILT(field, value, error)                           \
	do {                                                  \
		parts = good_parts;                           \
		parts.field = value;                          \
		assert_int_equal(decode_parts(parts), error); \
	} while (0)
	SPOILT(mapping_id, 0, DECODE_BAD_MAPPING_ID);
	SPOILT(function_id, 0, DECODE_BAD_FUNCTION_ID);
	SPOILT(location_id, 0, DECODE_BAD_LOCATION_ID);
	SPOILT(location_mapping, 8, DECODE_OK); /* tolerated by google/pprof */
	SPOILT(line_function, 0, DECODE_NO_FUNCTION);
	SPOILT(line_function, 8, DECODE_NO_FUNCTION);
	SPOILT(sample_location, 0, DECODE_NO_LOCATION);
	SPOILT(sample_location, 1, DECODE_NO_LOCATION);
	SPOILT(type_string, 3, DECODE_BAD_STRING);
	SPOILT(type_string, UINT64_MAX, DECODE_BAD_STRING);
	SPOILT(value_count, 0, DECODE_BAD_VALUE_COUNT);
	SPOILT(value_count, 2, DECODE_BAD_VALUE_COUNT);
	SPOILT(first_string, "x", DECODE_BAD_STRING_TABLE);
#undef SPOILT
}

static void repeated_ids_and_times_are_refused(void **state)
{
	struct bytes b = {.len = 0};

	write_parts(&b, &good_parts);
	put_message(&b, PROFILE_LOCATION, PAIRS(LOCATION_ID, good_parts.location_id, LOCATION_ADDRESS, 1));
	assert_int_equal(decode_error_of(&b), DECODE_BAD_LOCATION_ID);
	b.len = 0;
	write_parts(&b, &good_parts);
	put_message(&b, PROFILE_MAPPING, PAIRS(MAPPING_ID, good_parts.mapping_id));
	assert_int_equal(decode_error_of(&b), DECODE_BAD_MAPPING_ID);
	b.len = 0;
	write_parts(&b, &good_parts);
	put_message(&b, PROFILE_FUNCTION, PAIRS(FUNCTION_ID, good_parts.function_id));
	assert_int_equal(decode_error_of(&b), DECODE_BAD_FUNCTION_ID);
	b.len = 0;
	write_parts(&b, &good_parts);
	put_number(&b, PROFILE_TIME_NANOS, 1);
	assert_int_equal(decode_error_of(&b), DECODE_OK);
	put_number(&b, PROFILE_TIME_NANOS, 1);
	assert_int_equal(decode_error_of(&b), DECODE_CONCATENATED);
}

static void what_is_no_profile_is_refused(void **state)
{
	struct bytes b = {.len = 0};
	struct profile *p;

	assert_int_equal(decode_error_of(&b), DECODE_EMPTY);
	put(&b, "heap profile: 1: 2 [3: 4] @ heapprofile\n", 40);
	assert_int_equal(decode_error_of(&b), DECODE_NOT_A_PROFILE);
	b.len = 0;
	write_parts(&b, &good_parts);
	put_string(&b, PROFILE_PERIOD, "x"); /* a number of the wrong wire type */
	assert_int_equal(decode_error_of(&b), DECODE_NOT_A_PROFILE);
	b.len = 0;
	write_parts(&b, &good_parts);
	put_number(&b, PROFILE_SAMPLE, 1);
	assert_int_equal(decode_error_of(&b), DECODE_NOT_A_PROFILE);
	b.len = 0;
	put_string(&b, PROFILE_STRING_TABLE, "");
	put_message(&b, PROFILE_SAMPLE, PAIRS(0));
	assert_int_equal(decode_error_of(&b), DECODE_NO_SAMPLE_TYPE);
	b.len = 0;
	write_parts(&b, &good_parts);
	assert_int_equal(decode_profile(b.data, b.len, b.len - 1, &p), DECODE_TOO_LARGE);
}

enum { LONG_TEXT_BYTES = 1 << 20, LONG_TEXT_LIMIT = 16 << 20 };

/* One long text in `places` places, whose kind `field` says. */
static enum decode_error decode_with_a_long_text(uint32_t field, uint32_t places)
{
	static struct bytes head, tail;
	uint8_t *data = malloc(sizeof(head.data) + sizeof(tail.data) + LONG_TEXT_BYTES + 16);
	enum decode_error error;
	struct profile *p;
	size_t len;

	assert_non_null(data);
	head.len = tail.len = 0;
	write_parts(&head, &good_parts);
	put_varint(&head, PROFILE_STRING_TABLE << 3 | 2); /* number 3 */
	put_varint(&head, LONG_TEXT_BYTES);
	if (field == PROFILE_LOCATION)
		put_message(&tail, PROFILE_FUNCTION, PAIRS(FUNCTION_ID, 5, FUNCTION_NAME, 3));
	if (field == PROFILE_MAPPING)
		put_message(&tail, PROFILE_MAPPING, PAIRS(MAPPING_ID, 5, MAPPING_FILENAME, 3));
	for (uint32_t i = 0; i < places; i++) {
		struct bytes entry = {.len = 0};

		if (field == PROFILE_SAMPLE) {
			put_number(&entry, SAMPLE_LOCATION_ID, good_parts.location_id);
			put_number(&entry, SAMPLE_VALUE, 0);
			put_message(&entry, SAMPLE_LABEL, PAIRS(LABEL_KEY, 3));
			put_bytes(&tail, PROFILE_SAMPLE, entry.data, entry.len);
		} else if (field == PROFILE_FUNCTION) {
			put_message(&tail, PROFILE_FUNCTION, PAIRS(FUNCTION_ID, 5 + i, FUNCTION_NAME, 3));
		} else if (field == PROFILE_COMMENT) {
			put_number(&tail, PROFILE_COMMENT, 3);
		} else {
			put_number(&entry, LOCATION_ID, 1000 + i);
			put_number(&entry, LOCATION_ADDRESS, i);
			if (field == PROFILE_LOCATION)
				put_message(&entry, LOCATION_LINE, PAIRS(LINE_FUNCTION_ID, 5));
			else
				put_number(&entry, LOCATION_MAPPING_ID, 5);
			put_bytes(&tail, PROFILE_LOCATION, entry.data, entry.len);
		}
	}
	len = head.len + LONG_TEXT_BYTES + tail.len;
	memcpy(data, head.data, head.len);
	memset(data + head.len, 'x', LONG_TEXT_BYTES);
	memcpy(data + head.len + LONG_TEXT_BYTES, tail.data, tail.len);
	error = decode_profile(data, len, LONG_TEXT_LIMIT, &p);
	free(data);
	if (!error)
		profile_free(p);
	return error;
}

/* A text is gone through at each place, here and by every reader: at 25 KB on disk that was hours. */
static void a_long_text_in_many_places_is_refused(void **state)
{
	static const uint32_t fields[] = {
	    PROFILE_SAMPLE, PROFILE_FUNCTION, PROFILE_LOCATION, PROFILE_MAPPING, PROFILE_COMMENT};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		assert_int_equal(decode_with_a_long_text(fields[i], 50), DECODE_OK);
		assert_int_equal(decode_with_a_long_text(fields[i], 100), DECODE_TOO_LARGE);
	}
}

static void the_gzip_layer_has_its_errors(void **state)
{
	struct bytes b = {.len = 0};
	struct profile *p;
	uint8_t *zipped, *empty, *both;
	size_t len, empty_len;

	write_parts(&b, &good_parts);
	assert_int_equal(gzip_encode(b.data, b.len, 6, &zipped, &len), 0);
	assert_int_equal(gzip_encode("", 0, 6, &empty, &empty_len), 0);
	assert_int_equal(decode_profile(zipped, len, 1 << 20, &p), DECODE_OK);
	profile_free(p);
	assert_int_equal(decode_profile(zipped, len, b.len - 1, &p), DECODE_TOO_LARGE);
	assert_int_equal(decode_profile(zipped, len - 1, DECODE_MAX_BYTES, &p), DECODE_TRUNCATED_GZIP);
	assert_int_equal(decode_profile(empty, empty_len, DECODE_MAX_BYTES, &p), DECODE_EMPTY);
	both = calloc(1, len + empty_len + 1);
	assert_non_null(both);
	memcpy(both, zipped, len);
	assert_int_equal(decode_profile(both, len + 1, DECODE_MAX_BYTES, &p), DECODE_TRAILING_BYTES);
	memcpy(both + len, empty, empty_len);
	assert_int_equal(decode_profile(both, len + empty_len, DECODE_MAX_BYTES, &p), DECODE_OK);
	profile_free(p);
	both[len - 1] ^= 1; /* the length in the trailer */
	assert_int_equal(decode_profile(both, len, DECODE_MAX_BYTES, &p), DECODE_DAMAGED_GZIP);
	free(both);
	free(empty);
	free(zipped);
}

static void every_error_has_a_text(void **state)
{
	int error;

	for (error = 0; error < DECODE_ERROR_COUNT; error++)
		assert_true(strlen(decode_error_string((enum decode_error)error)) > 4);
	assert_string_equal(decode_error_string(DECODE_ERROR_COUNT), "unknown error");
}

static void broken_utf8_is_mended(void **state)
{
	struct bytes b = {.len = 0};
	struct profile *p;

	put_message(&b, PROFILE_SAMPLE_TYPE, PAIRS(VALUE_TYPE_TYPE, 1, VALUE_TYPE_UNIT, 2));
	put_string(&b, PROFILE_STRING_TABLE, "");
	put_bytes(&b, PROFILE_STRING_TABLE, "a\xff", 2);
	put_bytes(&b, PROFILE_STRING_TABLE, "b\0c", 3);
	assert_int_equal(decode(&b, &p), DECODE_OK);
	assert_string_equal(profile_sample_type(p, 0).type, "a\xef\xbf\xbd");
	assert_string_equal(profile_sample_type(p, 0).unit,
	    "b\xef\xbf\xbd"
	    "c");
	profile_free(p);
}

static void comments_come_packed_or_not(void **state)
{
	struct bytes b = {.len = 0};
	struct profile *p;

	put_number(&b, PROFILE_COMMENT, 1);
	put_bytes(&b, PROFILE_COMMENT, "\2\1", 2);
	put_string(&b, PROFILE_STRING_TABLE, "");
	put_string(&b, PROFILE_STRING_TABLE, "one");
	put_string(&b, PROFILE_STRING_TABLE, "two");
	assert_int_equal(decode(&b, &p), DECODE_OK);
	assert_int_equal(profile_comment_count(p), 3);
	assert_string_equal(profile_comment(p, 1), "two");
	profile_free(p);
}

/* Cut anywhere, one bit turned anywhere: an error or a profile that can be written, never anything else. */
static void no_damage_does_harm(void **state)
{
	struct profile *p = heap_profile(), *q;
	uint8_t *data, *again;
	size_t len, again_len, at;
	struct bytes b;

	assert_int_equal(encode_profile(p, &data, &len), 0);
	assert_true(len < sizeof(b.data));
	for (at = 0; at < 9 * len; at++) {
		b.len = at < len ? at : len;
		memcpy(b.data, data, b.len);
		if (at >= len)
			b.data[(at - len) / 8] ^= (uint8_t)(1 << (at - len) % 8);
		if (decode(&b, &q) != DECODE_OK)
			continue;
		assert_int_equal(encode_profile(q, &again, &again_len), 0);
		free(again);
		profile_free(q);
	}
	free(data);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_profile_made_by_go_is_read),
	    cmocka_unit_test(ids_are_any_numbers_and_fields_in_any_order),
	    cmocka_unit_test(many_sparse_ids_are_found),
	    cmocka_unit_test(each_kind_of_damage_has_its_error),
	    cmocka_unit_test(repeated_ids_and_times_are_refused),
	    cmocka_unit_test(what_is_no_profile_is_refused),
	    cmocka_unit_test(a_long_text_in_many_places_is_refused),
	    cmocka_unit_test(the_gzip_layer_has_its_errors),
	    cmocka_unit_test(every_error_has_a_text),
	    cmocka_unit_test(broken_utf8_is_mended),
	    cmocka_unit_test(comments_come_packed_or_not),
	    cmocka_unit_test(no_damage_does_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/check/check.h"
#include "pprof/codec/decode.h"
#include "pprof/codec/encode.h"
#include "pprof/codec/gzip.h"
#include "pprof/codec/wire.h"
#include "pprof/model/schema.h"
#include "tests/unit/pprof_bytes.h"

static struct profile *write_and_read(const struct profile *p)
{
	struct profile *again;
	uint8_t *data;
	size_t len;

	assert_int_equal(encode_profile(p, &data, &len), 0);
	assert_int_equal(decode_profile(data, len, DECODE_MAX_BYTES, &again), DECODE_OK);
	free(data);
	return again;
}

static void assert_valid(const struct profile *p, enum check_level level)
{
	struct check_report report;
	uint8_t *data, *file;
	size_t len, file_len;

	assert_int_equal(encode_profile(p, &data, &len), 0);
	assert_int_equal(gzip_encode(data, len, GZIP_LEVEL_FAST, &file, &file_len), 0);
	assert_int_equal(check_profile(file, file_len, level, CHECK_MAX_BYTES, &report), 0);
	if (report.error_count)
		print_message("%s\n", report.findings[0].message);
	assert_int_equal(report.error_count, 0);
	check_report_fini(&report);
	free(data);
	free(file);
}

static void a_profile_reads_back(void **state)
{
	struct profile *p = heap_profile(), *q;
	struct profile_location location;
	struct profile_sample sample;

	profile_set_drop_frames(p, "malloc|calloc");
	q = write_and_read(p);
	assert_int_equal(profile_sample_type_count(q), 4);
	assert_string_equal(profile_sample_type(q, 2).type, "inuse_objects");
	assert_string_equal(profile_default_sample_type(q), "inuse_space");
	assert_string_equal(profile_drop_frames(q), "malloc|calloc");
	assert_string_equal(profile_comment(q, 0), "heaptap test");
	assert_string_equal(profile_period_type(q).type, "space");
	assert_int_equal(profile_period(q), 524288);
	assert_true(profile_time_ns(q) == 1700000000000000000);
	assert_int_equal(profile_duration_ns(q), 0);
	assert_int_equal(profile_sample_count(q), 2);

	sample = profile_sample(q, 0);
	assert_int_equal(sample.depth, 2);
	assert_int_equal(sample.values[1], 400);
	assert_int_equal(sample.label_count, 1);
	assert_int_equal(profile_sample_label(q, 0, 0).num, 100);
	location = profile_location(q, sample.locations[0]);
	assert_true(location.address == 0x400020);
	assert_int_equal(location.line_count, 2);
	assert_string_equal(profile_function(q, location.lines[0].function).name, "inner");
	assert_int_equal(location.lines[0].line, 3);
	assert_int_equal(location.lines[0].column, 7);
	assert_string_equal(profile_function(q, location.lines[1].function).name, "outer");
	assert_string_equal(profile_mapping(q, location.mapping).filename, "/bin/app");
	assert_string_equal(profile_mapping(q, location.mapping).build_id, "00ff");
	assert_true(profile_mapping(q, location.mapping).file_offset == 0x1000);
	assert_int_equal(profile_mapping(q, location.mapping).flags, profile_mapping(p, 1).flags);
	assert_int_equal(profile_sample(q, 1).label_count, 2);
	profile_free(q);
	profile_free(p);
}

static void what_we_write_is_a_valid_heap_profile(void **state)
{
	struct profile *p = heap_profile();

	assert_valid(p, CHECK_HEAP);
	profile_free(p);
}

/* Nothing sampled yet is a profile too: types and the main mapping. */
static void a_profile_without_samples_is_valid(void **state)
{
	struct profile *p = profile_new(), *q;

	add_go_types(p);
	profile_add_mapping(p, &(struct profile_mapping){0x400000, 0x500000, 0, "/bin/app", "", 0});
	profile_compute_mapping_flags(p);
	assert_valid(p, CHECK_HEAP);
	q = write_and_read(p);
	assert_int_equal(profile_sample_count(q), 0);
	assert_int_equal(profile_mapping_count(q), 1);
	profile_free(q);
	profile_free(p);
}

static void the_same_profile_gives_the_same_bytes(void **state)
{
	struct profile *p = heap_profile(), *q = heap_profile();
	uint8_t *first, *second, *third;
	size_t first_len, second_len, third_len;
	struct profile *again;

	assert_int_equal(encode_profile(p, &first, &first_len), 0);
	assert_int_equal(encode_profile(q, &second, &second_len), 0);
	assert_int_equal(decode_profile(first, first_len, DECODE_MAX_BYTES, &again), DECODE_OK);
	assert_int_equal(encode_profile(again, &third, &third_len), 0);
	assert_int_equal(first_len, second_len);
	assert_memory_equal(first, second, first_len);
	assert_int_equal(first_len, third_len);
	assert_memory_equal(first, third, first_len);
	free(first);
	free(second);
	free(third);
	profile_free(again);
	profile_free(q);
	profile_free(p);
}

/* Labels are in the order of their texts, whichever string was seen first. */
static void the_order_of_labels_is_fixed(void **state)
{
	struct profile_label a = {.key = "a", .str = "x"}, b = {.key = "b", .str = "x"};
	struct profile *p = profile_new(), *q;

	profile_add_sample_type(p, "n", "count");
	profile_add_sample(p, NULL, 0, (int64_t[]){1}, &b, 1);
	profile_add_sample(p, NULL, 0, (int64_t[]){1}, (struct profile_label[]){b, a}, 2);
	q = write_and_read(p);
	assert_string_equal(profile_sample_label(p, 1, 0).key, "a");
	assert_string_equal(profile_sample_label(p, 1, 1).key, "b");
	assert_string_equal(profile_sample_label(q, 1, 0).key, "a");
	assert_string_equal(profile_sample_label(q, 1, 1).key, "b");
	profile_free(q);
	profile_free(p);
}

static void only_what_is_used_is_written(void **state)
{
	struct profile *p = heap_profile(), *q;
	uint32_t zero = add_location(p, 2, 0x600010, add_function(p, "never", "/never.c"), 1);

	add_function(p, "unused", "/unused.c");
	profile_add_sample(p, &zero, 1, (int64_t[]){0, 0, 0, 0}, NULL, 0);
	profile_compute_mapping_flags(p);
	assert_valid(p, CHECK_HEAP);
	q = write_and_read(p);
	assert_int_equal(profile_sample_count(q), 2);
	assert_int_equal(profile_mapping_count(q), 2);
	assert_string_equal(profile_mapping(q, 1).filename, "/bin/app");
	assert_string_equal(profile_mapping(q, 2).filename, "/lib/libx.so");
	assert_int_equal(profile_location_count(q), 3);
	assert_int_equal(profile_function_count(q), 4);
	profile_free(q);
	profile_free(p);
}

static void the_first_mapping_is_written_even_unused(void **state)
{
	struct profile *p = profile_new(), *q;
	uint32_t lib, location;

	add_go_types(p);
	profile_add_mapping(p, &(struct profile_mapping){0x400000, 0x500000, 0, "/bin/app", "", 0});
	lib = profile_add_mapping(p, &(struct profile_mapping){0x600000, 0x700000, 0, "/lib/l.so", "", 0});
	location = add_location(p, lib, 0x600010, add_function(p, "f", ""), 0);
	profile_add_sample(p, &location, 1, (int64_t[]){1, 1, 1, 1}, NULL, 0);
	profile_compute_mapping_flags(p);
	assert_valid(p, CHECK_HEAP);
	q = write_and_read(p);
	assert_int_equal(profile_mapping_count(q), 2);
	assert_string_equal(profile_mapping(q, 1).filename, "/bin/app");
	profile_free(q);
	profile_free(p);
}

static void a_sum_that_came_to_zero_is_not_written(void **state)
{
	struct profile *p = profile_new(), *q;

	profile_add_sample_type(p, "n", "count");
	profile_add_sample(p, NULL, 0, (int64_t[]){5}, NULL, 0);
	profile_add_sample(p, NULL, 0, (int64_t[]){-5}, NULL, 0);
	assert_true(profile_sample_is_zero(p, 0));
	q = write_and_read(p);
	assert_int_equal(profile_sample_count(q), 0);
	profile_free(q);
	profile_free(p);
}

static void extreme_numbers_survive(void **state)
{
	struct profile *p = profile_new(), *q;
	uint32_t m, location;

	profile_add_sample_type(p, "n", "count");
	profile_set_time(p, INT64_MAX, INT64_MIN);
	m = profile_add_mapping(p, &(struct profile_mapping){0, UINT64_MAX, UINT64_MAX, "", "", 15});
	location = profile_add_location(
	    p, &(struct profile_location){.mapping = m, .address = UINT64_MAX, .folded = true});
	profile_add_sample(p, &location, 1, (int64_t[]){INT64_MIN},
	    &(struct profile_label){.key = "k", .num = INT64_MIN}, 1);
	q = write_and_read(p);
	assert_true(profile_time_ns(q) == INT64_MAX && profile_duration_ns(q) == INT64_MIN);
	assert_true(
	    profile_mapping(q, 1).limit == UINT64_MAX && profile_mapping(q, 1).file_offset == UINT64_MAX);
	assert_int_equal(profile_mapping(q, 1).flags, 15);
	assert_true(profile_location(q, 1).address == UINT64_MAX && profile_location(q, 1).folded);
	assert_true(profile_sample(q, 0).values[0] == INT64_MIN);
	assert_true(profile_sample_label(q, 0, 0).num == INT64_MIN);
	profile_free(q);
	profile_free(p);
}

static void a_failed_build_is_not_written(void **state)
{
	struct profile *p = profile_new();
	uint8_t *data;
	size_t len;

	profile_add_sample_type(p, "n", "count");
	profile_add_sample(p, (uint32_t[]){9}, 1, (int64_t[]){1}, NULL, 0);
	assert_int_equal(encode_profile(p, &data, &len), -EINVAL);
	profile_free(p);
}

/* Readers that parse forwards, and people with a hex dump, expect the order of the field numbers. */
static void fields_come_in_order(void **state)
{
	struct profile *p = heap_profile();
	struct wire_field field;
	uint32_t last = 0;
	struct wire w;
	uint8_t *data;
	size_t len;

	assert_int_equal(encode_profile(p, &data, &len), 0);
	w = (struct wire){data, data + len};
	while (wire_next(&w, &field) > 0) {
		assert_true(field.number >= last);
		last = field.number;
		assert_true(field.number != PROFILE_COMMENT || field.type == WIRE_VARINT);
	}
	assert_int_equal(last, PROFILE_DEFAULT_SAMPLE_TYPE);
	free(data);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_profile_reads_back),
	    cmocka_unit_test(what_we_write_is_a_valid_heap_profile),
	    cmocka_unit_test(a_profile_without_samples_is_valid),
	    cmocka_unit_test(the_same_profile_gives_the_same_bytes),
	    cmocka_unit_test(the_order_of_labels_is_fixed),
	    cmocka_unit_test(only_what_is_used_is_written),
	    cmocka_unit_test(the_first_mapping_is_written_even_unused),
	    cmocka_unit_test(a_sum_that_came_to_zero_is_not_written),
	    cmocka_unit_test(extreme_numbers_survive),
	    cmocka_unit_test(a_failed_build_is_not_written),
	    cmocka_unit_test(fields_come_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker on whole files: the gzip around the profile, floods of faults, large profiles, one made by Go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "pprof/check.h"
#include "pprof/file.h"
#include "tests/unit/pprof_good.h"

/* The rules of the file around the profile. */
static void the_file_is_one_gzip_member(void **state)
{
	struct check_report report;
	struct bytes b = {.len = 0}, file = {.len = 0};
	uint64_t string_count;
	uint8_t *zipped;
	size_t len;

	encode_good(&b, &string_count);
	assert_int_equal(check_profile(b.data, b.len, CHECK_HEAP, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(severity_in(&report, "not compressed"), 'e');
	check_report_fini(&report);
	assert_int_equal(check_profile(b.data, b.len, CHECK_FOREIGN, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(report.finding_count, 0);
	check_report_fini(&report);

	assert_int_equal(gzip_encode(b.data, b.len, 6, &zipped, &len), 0);
	put(&file, zipped, len);
	put(&file, "x", 1);
	assert_int_equal(check_profile(file.data, file.len, CHECK_FOREIGN, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(severity_in(&report, "1 bytes after its end"), 'e');
	check_report_fini(&report);
	assert_int_equal(check_profile(file.data, len - 1, CHECK_FOREIGN, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(severity_in(&report, "gzip: cut short"), 'e');
	check_report_fini(&report);
	file.data[len - 5] ^= 1; /* the CRC */
	assert_int_equal(check_profile(file.data, len, CHECK_FOREIGN, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(severity_in(&report, "gzip: damaged"), 'e');
	check_report_fini(&report);
	free(zipped);

	file.len = 0;
	assert_int_equal(gzip_encode("", 0, 6, &zipped, &len), 0);
	put(&file, zipped, len);
	free(zipped);
	assert_int_equal(check_profile(file.data, file.len, CHECK_FOREIGN, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(severity_in(&report, "the profile is empty"), 'e');
	check_report_fini(&report);
	assert_int_equal(gzip_encode(b.data, b.len, 6, &zipped, &len), 0);
	put(&file, zipped, len);
	free(zipped);
	assert_int_equal(check_profile(file.data, file.len, CHECK_FOREIGN, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(severity_in(&report, "2 members"), 'w');
	check_report_fini(&report);
	assert_int_equal(check_profile("", 0, CHECK_FOREIGN, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(severity_in(&report, "the profile is empty"), 'e');
	check_report_fini(&report);
}

/* A file may have a million faults: all are counted, some are kept, and warnings leave room for errors. */
static void a_flood_of_findings_is_bounded(void **state)
{
	enum { FLOOD = 500 };
	struct check_report report;
	struct bytes b = {.len = 0};
	uint64_t string_count;
	int i;

	encode_good(&b, &string_count);
	for (i = 0; i < FLOOD; i++)
		put_number(&b, 16, 1);
	check_zipped(&b, CHECK_FOREIGN, &report);
	assert_int_equal(report.warning_count, FLOOD);
	assert_int_equal(report.finding_count, CHECK_FINDINGS_MAX / 2);
	check_report_fini(&report);
	put_number(&b, PROFILE_TIME_NANOS, 1);
	check_zipped(&b, CHECK_FOREIGN, &report);
	assert_int_equal(severity_in(&report, "time_nanos comes twice"), 'e');
	check_report_fini(&report);
}

/* After fork() the child has blocks in use that it never allocated. */
static void inherited_blocks_need_no_allocation(void **state)
{
	struct profile_label labels[] = {
	    {.key = "bytes", .num = 10, .unit = "bytes"}, {.key = "inherited", .str = "yes"}};
	struct profile *p;
	struct check_report report;
	struct bytes b;
	uint8_t *data;
	size_t len, label_count;

	for (label_count = 1; label_count <= 2; label_count++) {
		p = heap_profile();
		profile_add_sample(p, (uint32_t[]){1}, 1, (int64_t[]){0, 0, 1, 10}, labels, label_count);
		assert_int_equal(encode_profile(p, &data, &len), 0);
		b.len = 0;
		put(&b, data, len);
		check_zipped(&b, CHECK_HEAP, &report);
		assert_int_equal(severity_in(&report, "more in use than"), label_count == 1 ? 'e' : '-');
		assert_int_equal(report.error_count, label_count == 1);
		check_report_fini(&report);
		free(data);
		profile_free(p);
	}
}

/* What is valid but more than Pyroscope takes by default. */
static void large_profiles_get_advice(void **state)
{
	enum { SAMPLES = 16001, DEPTH = 1001 };
	struct profile *p = profile_new();
	struct check_report report;
	static uint32_t stack[DEPTH];
	uint8_t *data, *zipped;
	size_t len, zipped_len;
	int64_t i;

	add_go_types(p);
	profile_add_mapping(p, &(struct profile_mapping){0x1000, 0x2000, 0, "/bin/app", "", 0});
	for (i = 0; i < DEPTH; i++)
		stack[i] = add_location(p, 0, 1, add_function(p, "f", ""), 0);
	profile_add_sample(p, stack, DEPTH, (int64_t[]){1, 1, 1, 1}, NULL, 0);
	for (i = 1; i < SAMPLES; i++)
		profile_add_sample(p, stack, 300, (int64_t[]){1, 1, 1, 1},
		    &(struct profile_label){.key = "bytes", .num = i, .unit = "bytes"}, 1);
	assert_int_equal(encode_profile(p, &data, &len), 0);
	assert_int_equal(gzip_encode(data, len, 1, &zipped, &zipped_len), 0);
	assert_int_equal(check_profile(zipped, zipped_len, CHECK_HEAP, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(report.error_count, 0);
	assert_int_equal(report.warning_count, 4);
	assert_int_equal(severity_in(&report, "bytes uncompressed"), 'w');
	assert_int_equal(severity_in(&report, "16001 samples"), 'w');
	assert_int_equal(severity_in(&report, "sample 1: 1001 frames"), 'w');
	assert_int_equal(severity_in(&report, "1 samples without a label bytes"), 'w');
	check_report_fini(&report);
	free(data);
	free(zipped);
	profile_free(p);
}

static void damage_at_the_top_level_is_said_once(void **state)
{
	struct check_report report;
	struct bytes b = {.len = 0};
	uint64_t string_count;

	encode_good(&b, &string_count);
	put(&b, "\x0f", 1);
	check_zipped(&b, CHECK_FOREIGN, &report);
	assert_int_equal(report.finding_count, 1);
	assert_int_equal(severity_in(&report, "damaged protobuf at byte"), 'e');
	check_report_fini(&report);
}

static void a_profile_made_by_go_is_fit_for_its_readers(void **state)
{
	struct check_report report;
	uint8_t *data;
	size_t len;

	assert_int_equal(file_read("tests/readers/go_heap.pb.gz", 1 << 20, &data, &len), 0);
	assert_int_equal(check_profile(data, len, CHECK_FOREIGN, CHECK_MAX_BYTES, &report), 0);
	assert_int_equal(report.finding_count, 0);
	check_report_fini(&report);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_file_is_one_gzip_member),
	    cmocka_unit_test(a_flood_of_findings_is_bounded),
	    cmocka_unit_test(inherited_blocks_need_no_allocation),
	    cmocka_unit_test(large_profiles_get_advice),
	    cmocka_unit_test(damage_at_the_top_level_is_said_once),
	    cmocka_unit_test(a_profile_made_by_go_is_fit_for_its_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

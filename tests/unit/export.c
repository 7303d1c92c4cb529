/* SPDX-License-Identifier: Apache-2.0 */
/* Export formats with the values and times of hostile profiles. */
#include "pprof/export/format.h"
#include "pprof/model/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_SECONDS = 60 }; /* of CPU or of waiting: the mended code takes a few milliseconds */

static struct profile *profile_make(void)
{
	struct profile *p = profile_new();

	profile_add_sample_type(p, "alloc_objects", "count");
	profile_add_sample_type(p, "alloc_space", "bytes");
	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_period(p, "space", "bytes", 16384);
	return p;
}

static void profile_put(struct profile *p, const char *name, const int64_t values[4])
{
	const struct profile_function function = {.name = name, .system_name = name};
	const struct profile_line line = {.function = profile_add_function(p, &function)};
	const struct profile_location location = {
	    .address = (uintptr_t)name, .lines = &line, .line_count = 1};
	uint32_t id = profile_add_location(p, &location);

	assert_int_equal(profile_add_sample(p, &id, 1, values, NULL, 0), 0);
}

/* Two stacks, in `columns` columns that are alike. */
static void make_traces(struct traces *t, size_t columns, const int64_t one[4], const int64_t other[4])
{
	static const struct traces_options plain;
	struct profile *p = profile_make();

	profile_put(p, "one", one);
	profile_put(p, "other", other);
	assert_int_equal(traces_init(t, &plain, p, columns), 0);
	for (size_t i = 0; i < columns; i++)
		assert_int_equal(traces_add(t, p, i), 0);
	profile_free(p);
}

/* Negative values are written as nothing, so they must not make the scale smaller either. */
static void negative_values_do_not_make_heaptrack_files_endless(void **state)
{
	static const int64_t huge[] = {INT64_C(1) << 62, INT64_C(1) << 62, 0, 0};
	static const int64_t negative[] = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
	uint64_t scale = 0;
	const struct export_request request = {
	    .title = "x", .program = "x", .series_count = 1, .scale = &scale};
	struct traces t;
	FILE *out = fopen("/dev/null", "w");

	(void)state;
	make_traces(&t, 1, huge, negative);
	alarm(PATIENCE_SECONDS);
	assert_int_equal(heaptrack_write(out, &t, &request), 0);
	alarm(0);
	fclose(out);
	assert_true(scale > UINT64_C(1) << 40);
	traces_fini(&t);
}

/* With the largest values that there are the scale is still a number. */
static void the_largest_values_have_a_scale(void **state)
{
	static const int64_t huge[] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
	uint64_t scale = 0;
	const struct export_request request = {
	    .title = "x", .program = "x", .series_count = 1, .scale = &scale};
	struct traces t;
	FILE *out = fopen("/dev/null", "w");

	(void)state;
	make_traces(&t, 1, huge, huge);
	alarm(PATIENCE_SECONDS);
	assert_int_equal(heaptrack_write(out, &t, &request), 0);
	alarm(0);
	fclose(out);
	assert_true(scale > UINT64_C(1) << 42);
	traces_fini(&t);
}

/* The difference of two times need not be a number of nanoseconds. */
static void the_longest_time_between_snapshots(void **state)
{
	static const int64_t values[] = {1, 100, 1, 100}, times[] = {INT64_MIN, INT64_MAX};
	const struct export_request request = {.kind = MEASURE_INUSE,
	    .title = "x",
	    .program = "x",
	    .series_count = 2,
	    .time_ns = times,
	    .threshold_permille = 10};
	struct traces t;
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	make_traces(&t, 2, values, values);
	assert_int_equal(massif_write(out, &t, &request), 0);
	fclose(out);
	assert_non_null(strstr(text, "snapshot=0\n#-----------\ntime=0\n"));
	assert_non_null(strstr(text, "snapshot=1\n#-----------\ntime=9223372036854\n"));
	free(text);
	traces_fini(&t);
}

static void no_cell_of_csv_is_a_formula(void **state)
{
	static const char *const names[] = {
	    "=a", "+a", "-a", "@a", "\uff1da", "\uff0ba", "\uff0da", "\uff20a", "\uff1ca", "a=b"};
	static const int64_t values[] = {1, 1, 1, 1};
	const struct export_request request = {.title = "x", .program = "x", .series_count = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *text = NULL, begin[32];
		size_t length = 0;
		struct traces t;
		FILE *out = open_memstream(&text, &length);
		static const struct traces_options plain;
		struct profile *p = profile_make();

		profile_put(p, names[i], values);
		assert_int_equal(traces_init(&t, &plain, p, 1), 0);
		assert_int_equal(traces_add(&t, p, 0), 0);
		assert_int_equal(csv_write(out, &t, &request), 0);
		fclose(out);
		snprintf(begin, sizeof(begin), "\n%s%s,", i < 8 ? "'" : "", names[i]);
		assert_non_null(strstr(text, begin));
		free(text);
		traces_fini(&t);
		profile_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(negative_values_do_not_make_heaptrack_files_endless),
	    cmocka_unit_test(the_largest_values_have_a_scale),
	    cmocka_unit_test(the_longest_time_between_snapshots),
	    cmocka_unit_test(no_cell_of_csv_is_a_formula),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

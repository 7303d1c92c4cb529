/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a profile that a filter selects, beside what traces with the same filter show. */
#include "pprof/analysis/filtered_profile.h"
#include "pprof/analysis/filter.h"
#include "pprof/analysis/late_names.h"
#include "pprof/analysis/traces.h"
#include "pprof/model/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* main > load<int> > copy, and of it allocate, which is not shown. */

static uint32_t function(struct profile *p, const char *name, const char *file)
{
	return profile_add_function(
	    p, &(struct profile_function){.name = name, .system_name = name, .filename = file});
}

static uint32_t location(struct profile *p, uint64_t address, const struct profile_line *lines, size_t count)
{
	return profile_add_location(p,
	    &(struct profile_location){
	        .mapping = 1, .address = address, .lines = lines, .line_count = count});
}

static void add(struct profile *p, const uint32_t *stack, size_t depth, int64_t blocks, int64_t bytes,
    const char *thread, const char *age)
{
	const int64_t values[] = {blocks, blocks * bytes, blocks, blocks * bytes};
	const struct profile_label labels[] = {{.key = "thread_name", .str = thread},
	    {.key = "age", .str = age}, {.key = "bytes", .num = bytes, .unit = "bytes"}};

	assert_int_equal(profile_add_sample(p, stack, depth, values, labels, 3), 0);
}

static struct profile *make(void)
{
	struct profile *p = profile_new();
	const struct profile_mapping mapping = {
	    .start = 0x1000, .limit = 0x9000, .filename = "/bin/server", .build_id = "00"};
	uint32_t main, load, load_char, copy, allocate, entry, here, there, inner;

	profile_add_sample_type(p, "alloc_objects", "count");
	profile_add_sample_type(p, "alloc_space", "bytes");
	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_default_sample_type(p, "inuse_space");
	profile_set_period(p, "space", "bytes", 4096);
	profile_set_time(p, 1000, 0);
	profile_add_comment(p, "heaptap 0.1.0");
	profile_set_drop_frames(p, "malloc|allocate");
	profile_add_mapping(p, &mapping);
	main = function(p, "main", "main.c");
	load = function(p, "load<int>", "load.cc");
	load_char = function(p, "load<char>", "other.cc");
	copy = function(p, "copy", "copy.c");
	allocate = function(p, "allocate", "allocate.c");
	entry = location(p, 0x2000, &(struct profile_line){.function = main, .line = 1}, 1);
	here = location(p, 0x2010, &(struct profile_line){.function = load, .line = 2}, 1);
	there = location(p, 0x2020, &(struct profile_line){.function = load_char, .line = 3}, 1);
	inner = location(p, 0x2030,
	    (struct profile_line[]){{.function = allocate, .line = 4}, {.function = copy, .line = 5}}, 2);
	add(p, (uint32_t[]){inner, here, entry}, 3, 1, 100, "one", "1s-10s");
	add(p, (uint32_t[]){there, entry}, 2, 20, 1000, "two", "10s-1m");
	add(p, (uint32_t[]){entry}, 1, 300, 64, "one", "1m-10m");
	add(p, (uint32_t[]){location(p, 0x3000, NULL, 0)}, 1, 4000, 8, "two", "1s-10s");
	assert_int_equal(profile_error(p), 0);
	return p;
}

static int64_t shown(struct profile *profile, const struct filter *filter, struct traces *t)
{
	const struct traces_options options = {.names = FRAMES_SHORT, .filter = filter};
	int64_t sum = 0;

	assert_int_equal(traces_init(t, &options, profile, 1), 0);
	assert_int_equal(traces_add(t, profile, 0), 0);
	for (size_t row = 0; row < t->row_count; row++)
		sum += traces_value(t, row, 0, MEASURE_INUSE);
	return sum;
}

/* Rows of both, with their frames, in the order of the samples. */
static void compare(const struct traces *a, const struct traces *b)
{
	assert_int_equal(a->row_count, b->row_count);
	for (size_t row = 0; row < a->row_count; row++) {
		assert_int_equal(a->rows[row].depth, b->rows[row].depth);
		for (uint32_t i = 0; i < a->rows[row].depth; i++)
			assert_string_equal(a->frames.rows[traces_stack(a, row)[i]].name,
			    b->frames.rows[traces_stack(b, row)[i]].name);
		assert_int_equal(
		    traces_value(a, row, 0, MEASURE_ALLOC), traces_value(b, row, 0, MEASURE_ALLOC));
	}
}

static void check(const struct filter_texts *texts, const struct filter *more, int64_t wanted)
{
	struct filter filter = *more;
	const struct late_names names = {0};
	struct profile *whole = make(), *part;
	struct traces filtered, of_part;
	char error[256];

	assert_int_equal(filter_open(&filter, texts, "", error, sizeof(error)), 0);
	assert_int_equal(filtered_profile_make(whole, &filter, &names, &part), 0);
	assert_int_equal(shown(whole, &filter, &filtered), wanted);
	assert_int_equal(shown(part, NULL, &of_part), wanted);
	compare(&filtered, &of_part);
	assert_string_equal(profile_default_sample_type(part), "inuse_space");
	assert_int_equal(profile_period(part), 4096);
	traces_fini(&filtered);
	traces_fini(&of_part);
	profile_free(whole);
	profile_free(part);
	filter_close(&filter);
}

static void a_part_is_what_traces_show(void **state)
{
	static const struct filter none,
	    small = {.by_size = true, .size_min = 50, .size_max = 100},
	    old = {.by_age = true, .age_min_ns = UINT64_C(10000000000), .age_max_ns = UINT64_MAX};
	const int64_t all = 100 + 20000 + 19200 + 32000;

	(void)state;
	check(&(struct filter_texts){NULL}, &none, all);
	check(&(struct filter_texts){.focus = "^load$"}, &none, 20100);    /* the short name, of both */
	check(&(struct filter_texts){.focus = "load<int>"}, &none, 20100); /* one row in a table */
	check(&(struct filter_texts){.focus = "copy\\.c"}, &none, 100);
	check(&(struct filter_texts){.focus = "allocate"}, &none, 0); /* not shown, so not looked for */
	check(&(struct filter_texts){.ignore = "copy"}, &none, all - 100);
	check(&(struct filter_texts){.module = "server"}, &none, all);
	check(&(struct filter_texts){.module = "lib"}, &none, 0);
	check(&(struct filter_texts){.thread = "one"}, &none, 19300);
	check(&(struct filter_texts){NULL}, &small, 19300);
	check(&(struct filter_texts){NULL}, &old, 39200);
	check(&(struct filter_texts){.focus = "main", .thread = "one"}, &small, 19300);
	/* Hidden frames are left out; a stack of them alone keeps its bytes. */
	check(&(struct filter_texts){.hide = "main"}, &none, all);
	check(&(struct filter_texts){.hide = "load|copy"}, &none, all);
	check(&(struct filter_texts){.focus = "load", .hide = "main"}, &none, 20100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_part_is_what_traces_show)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

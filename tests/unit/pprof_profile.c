/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pprof/codec/encode.h"
#include "pprof/model/profile.h"
#include "tests/unit/pprof_bytes.h"

static void equal_strings_are_one_pointer(void **state)
{
	struct profile *p = profile_new();
	char text[] = "name";
	const char *first = profile_add_string(p, text, 4), *again;

	text[0] = 'g';
	assert_string_equal(first, "name");
	again = profile_add_string(p, "name", 4);
	assert_ptr_equal(first, again);
	assert_string_equal(profile_add_string(p, text, 4), "game");
	assert_string_equal(profile_add_string(p, "", 0), "");
	profile_free(p);
}

static void strings_survive_the_table_growing(void **state)
{
	struct profile *p = profile_new();
	const char *kept[5000];
	char text[200000];
	int i;

	for (i = 0; i < 5000; i++) {
		int len = snprintf(text, sizeof(text), "string number %d", i);

		kept[i] = profile_add_string(p, text, (size_t)len);
	}
	memset(text, 'x', sizeof(text));
	assert_int_equal(strlen(profile_add_string(p, text, sizeof(text))), sizeof(text));
	for (i = 0; i < 5000; i++) {
		int len = snprintf(text, sizeof(text), "string number %d", i);

		assert_string_equal(kept[i], text);
		assert_ptr_equal(profile_add_string(p, text, (size_t)len), kept[i]);
	}
	profile_free(p);
}

static void a_string_is_made_valid_utf8(void **state)
{
	struct profile *p = profile_new();

	assert_string_equal(profile_add_string(p,
	                        "a\xff"
	                        "b",
	                        3),
	    "a\xef\xbf\xbd"
	    "b");
	assert_string_equal(profile_add_string(p, "a\0b", 3),
	    "a\xef\xbf\xbd"
	    "b");
	assert_string_equal(profile_add_string(p, "\xc3\xa4", 2), "\xc3\xa4");
	profile_free(p);
}

static void functions_and_mappings_are_deduplicated(void **state)
{
	struct profile *p = profile_new();
	struct profile_mapping mapping = {0x1000, 0x2000, 0, "/bin/a", "aa", 0};
	uint32_t f = add_function(p, "f", "/a.c"), m = profile_add_mapping(p, &mapping);

	assert_int_equal(f, 1);
	assert_int_equal(add_function(p, "f", "/a.c"), f);
	assert_int_equal(add_function(p, "f", "/b.c"), 2);
	assert_int_equal(profile_add_function(p, &(struct profile_function){"f", "f", "/a.c", 2}), 3);
	assert_int_equal(profile_add_function(p, &(struct profile_function){"f", "_Z1fv", "/a.c", 1}), 4);
	assert_int_equal(profile_function_count(p), 4);
	assert_int_equal(m, 1);
	mapping.flags = PROFILE_HAS_FUNCTIONS;
	assert_int_equal(profile_add_mapping(p, &mapping), m);
	mapping.build_id = "bb";
	assert_int_equal(profile_add_mapping(p, &mapping), 2);
	assert_int_equal(profile_error(p), 0);
	profile_free(p);
}

static void locations_differ_by_mapping_address_and_lines(void **state)
{
	struct profile *p = profile_new();
	uint32_t m = profile_add_mapping(p, &(struct profile_mapping){0x1000, 0x2000, 0, "/bin/a", "", 0});
	uint32_t f = add_function(p, "f", ""), l = add_location(p, m, 0x1010, f, 1);
	struct profile_location bare = {.mapping = m, .address = 0x1010};

	assert_int_equal(add_location(p, m, 0x1010, f, 1), l);
	assert_int_not_equal(add_location(p, m, 0x1010, f, 2), l);
	assert_int_not_equal(add_location(p, m, 0x1011, f, 1), l);
	assert_int_not_equal(add_location(p, 0, 0x1010, f, 1), l);
	assert_int_not_equal(profile_add_location(p, &bare), l);
	assert_int_equal(profile_location_count(p), 5);
	bare.folded = true;
	assert_int_equal(profile_add_location(p, &bare), 6);
	assert_true(profile_location(p, 6).folded);
	assert_int_equal(profile_location(p, 6).line_count, 0);
	assert_int_equal(profile_location(p, l).lines[0].function, f);
	profile_free(p);
}

static void equal_stacks_with_equal_labels_are_summed(void **state)
{
	struct profile *p = profile_new();
	struct profile_label one = {.key = "bytes", .num = 8, .unit = "bytes"},
	                     two = {.key = "t", .str = "x"};
	uint32_t a, b;

	profile_add_sample_type(p, "n", "count");
	a = profile_add_location(p, &(struct profile_location){.address = 1});
	b = profile_add_location(p, &(struct profile_location){.address = 2});
	profile_add_sample(p, (uint32_t[]){a, b}, 2, (int64_t[]){1}, NULL, 0);
	profile_add_sample(p, (uint32_t[]){b, a}, 2, (int64_t[]){10}, NULL, 0);
	profile_add_sample(p, (uint32_t[]){a, b}, 2, (int64_t[]){100}, NULL, 0);
	assert_int_equal(profile_sample_count(p), 2);
	assert_int_equal(profile_sample(p, 0).values[0], 101);
	assert_int_equal(profile_sample(p, 1).values[0], 10);
	profile_add_sample(p, (uint32_t[]){a}, 1, (int64_t[]){1}, (struct profile_label[]){one, two}, 2);
	profile_add_sample(p, (uint32_t[]){a}, 1, (int64_t[]){1}, (struct profile_label[]){two, one}, 2);
	profile_add_sample(p, (uint32_t[]){a}, 1, (int64_t[]){1}, &one, 1);
	profile_add_sample(p, (uint32_t[]){a}, 1, (int64_t[]){1}, NULL, 0);
	assert_int_equal(profile_sample_count(p), 5);
	assert_int_equal(profile_sample(p, 2).values[0], 2);
	assert_int_equal(profile_sample(p, 2).label_count, 2);
	profile_free(p);
}

/* The order of labels means nothing, whatever they differ in. */
static void labels_in_any_order_are_one_set(void **state)
{
	const struct profile_label labels[] = {
	    {.key = "a", .num = 1, .unit = "s"},
	    {.key = "a", .num = 2, .unit = "s"},
	    {.key = "a", .num = 1, .unit = "m"},
	    {.key = "a", .str = "y"},
	    {.key = "a", .str = "x"},
	    {.key = "b", .str = "x"},
	};
	enum { COUNT = sizeof(labels) / sizeof(*labels) };
	struct profile *p = profile_new();
	size_t turn, i;

	profile_add_sample_type(p, "n", "count");
	for (turn = 0; turn < 2 * COUNT; turn++) {
		struct profile_label turned[COUNT];

		for (i = 0; i < COUNT; i++)
			turned[i] = labels[(turn < COUNT ? turn + i : turn + COUNT - i) % COUNT];
		profile_add_sample(p, NULL, 0, (int64_t[]){1}, turned, COUNT);
	}
	assert_int_equal(profile_sample_count(p), 1);
	assert_int_equal(profile_sample(p, 0).values[0], 2 * COUNT);
	profile_free(p);
}

static void labels_read_back(void **state)
{
	struct profile *p = profile_new();
	struct profile_label labels[] = {
	    {.key = "s", .str = "text"},
	    {.key = "n", .num = -5, .unit = "bytes"},
	    {.key = "zero", .num = 0, .unit = "bytes"},
	    {.key = "gone", .num = 0},
	    {.key = "empty", .str = ""},
	    {.key = "", .num = 1},
	};
	bool text = false, number = false, zero = false;
	size_t i;

	profile_add_sample_type(p, "n", "count");
	profile_add_sample(p, NULL, 0, (int64_t[]){1}, labels, 6);
	assert_int_equal(profile_sample(p, 0).label_count, 3);
	for (i = 0; i < 3; i++) {
		struct profile_label l = profile_sample_label(p, 0, i);

		text |= !strcmp(l.key, "s") && !strcmp(l.str, "text");
		number |= !strcmp(l.key, "n") && !l.str && l.num == -5 && !strcmp(l.unit, "bytes");
		zero |= !strcmp(l.key, "zero") && !l.str && l.num == 0 && !strcmp(l.unit, "bytes");
	}
	assert_true(text && number && zero);
	profile_free(p);
}

static void sums_saturate(void **state)
{
	struct profile *p = profile_new();

	profile_add_sample_type(p, "n", "count");
	profile_add_sample(p, NULL, 0, (int64_t[]){INT64_MAX - 1}, NULL, 0);
	profile_add_sample(p, NULL, 0, (int64_t[]){5}, NULL, 0);
	assert_true(profile_sample(p, 0).values[0] == INT64_MAX);
	profile_free(p);
}

static void wrong_ids_stick_as_an_error(void **state)
{
	struct profile *p = profile_new();
	struct profile_line line = {.function = 1};

	profile_add_sample_type(p, "n", "count");
	assert_int_equal(
	    profile_add_location(p, &(struct profile_location){.lines = &line, .line_count = 1}), 0);
	assert_int_equal(profile_error(p), -EINVAL);
	assert_int_equal(add_function(p, "f", ""), 0);
	profile_free(p);

	p = profile_new();
	profile_add_sample_type(p, "n", "count");
	assert_int_equal(profile_add_sample(p, (uint32_t[]){1}, 1, (int64_t[]){1}, NULL, 0), -EINVAL);
	assert_int_equal(profile_error(p), -EINVAL);
	profile_free(p);

	p = profile_new();
	assert_int_equal(profile_add_location(p, &(struct profile_location){.mapping = 1, .address = 1}), 0);
	assert_int_equal(profile_error(p), -EINVAL);
	profile_free(p);
}

static void types_come_before_samples(void **state)
{
	struct profile *p = profile_new();

	assert_int_equal(profile_add_sample_type(p, "n", "count"), 0);
	profile_add_sample(p, NULL, 0, (int64_t[]){1}, NULL, 0);
	assert_int_equal(profile_add_sample_type(p, "m", "count"), -EINVAL);
	profile_free(p);
}

static void flags_follow_from_the_locations(void **state)
{
	struct profile *p = heap_profile();
	uint32_t bare;

	assert_int_equal(profile_mapping(p, 1).flags,
	    PROFILE_HAS_FUNCTIONS | PROFILE_HAS_FILENAMES | PROFILE_HAS_LINE_NUMBERS |
	        PROFILE_HAS_INLINE_FRAMES);
	assert_int_equal(profile_mapping(p, 2).flags, 0);
	assert_int_equal(profile_mapping(p, 3).flags, PROFILE_HAS_FUNCTIONS);

	/* A location without a function counts once a sample that is written uses it. */
	bare = profile_add_location(p, &(struct profile_location){.mapping = 3, .address = 0x7f0020});
	profile_compute_mapping_flags(p);
	assert_int_equal(profile_mapping(p, 3).flags, PROFILE_HAS_FUNCTIONS);
	profile_add_sample(p, &bare, 1, (int64_t[]){0, 0, 0, 0}, NULL, 0);
	profile_compute_mapping_flags(p);
	assert_int_equal(profile_mapping(p, 3).flags, PROFILE_HAS_FUNCTIONS);
	profile_add_sample(p, &bare, 1, (int64_t[]){1, 8, 0, 0}, NULL, 0);
	profile_compute_mapping_flags(p);
	assert_int_equal(profile_mapping(p, 3).flags, 0);
	assert_int_equal(profile_error(p), 0);
	profile_free(p);
	profile_free(NULL);
}

static void the_header_reads_back(void **state)
{
	struct profile *p = profile_new();

	assert_string_equal(profile_default_sample_type(p), "");
	assert_string_equal(profile_period_type(p).type, "");
	add_go_types(p);
	profile_set_drop_frames(p, "malloc");
	profile_set_keep_frames(p, "mine");
	profile_set_doc_url(p, "https://example.org/");
	profile_set_time(p, 5, 6);
	profile_add_comment(p, NULL);
	assert_int_equal(profile_sample_type_count(p), 4);
	assert_string_equal(profile_sample_type(p, 3).type, "inuse_space");
	assert_string_equal(profile_sample_type(p, 3).unit, "bytes");
	assert_string_equal(profile_default_sample_type(p), "inuse_space");
	assert_string_equal(profile_period_type(p).type, "space");
	assert_int_equal(profile_period(p), 524288);
	assert_int_equal(profile_time_ns(p), 5);
	assert_int_equal(profile_duration_ns(p), 6);
	assert_string_equal(profile_drop_frames(p), "malloc");
	assert_string_equal(profile_keep_frames(p), "mine");
	assert_string_equal(profile_doc_url(p), "https://example.org/");
	assert_int_equal(profile_comment_count(p), 2);
	assert_string_equal(profile_comment(p, 0), "heaptap test");
	assert_string_equal(profile_comment(p, 1), "");
	profile_free(p);
}

/* 100k stacks of 60 frames, each added twice: found again, not searched for among its likes. */
static void many_samples_are_told_apart(void **state)
{
	enum { SAMPLES = 100000, DEPTH = 60, LOCATIONS = 1000 };
	struct profile *p = profile_new();
	uint32_t stack[DEPTH];
	uint64_t i;
	size_t j;

	profile_add_sample_type(p, "n", "count");
	for (i = 1; i <= LOCATIONS; i++)
		profile_add_location(p, &(struct profile_location){.address = i});
	for (i = 0; i < 2 * SAMPLES; i++) {
		uint64_t random = (i % SAMPLES + 1) * 0x9e3779b97f4a7c15ULL;

		for (j = 0; j < DEPTH; j++, random = random * 6364136223846793005ULL + 1)
			stack[j] = 1 + (uint32_t)((random >> 33) % LOCATIONS);
		profile_add_sample(p, stack, DEPTH, (int64_t[]){1}, NULL, 0);
	}
	assert_int_equal(profile_error(p), 0);
	assert_int_equal(profile_sample_count(p), SAMPLES);
	for (i = 0; i < SAMPLES; i++)
		assert_int_equal(profile_sample(p, i).values[0], 2);
	profile_free(p);
}

/* So many that several share 32 bits of hash: what tells entries apart is their content. */
static void entries_with_equal_hashes_are_told_apart(void **state)
{
	enum { ENTRIES = 500000 };
	struct profile *p = profile_new();
	char text[32];
	uint32_t i;

	for (i = 1; i <= ENTRIES; i++) {
		int len = snprintf(text, sizeof(text), "%u", i);
		/* One to one, but without the regularity in which multiplicative hashes do not collide. */
		uint64_t scattered =
		    (i * 0x9e3779b97f4a7c15ULL ^ (i * 0x9e3779b97f4a7c15ULL) >> 29) * 0xbf58476d1ce4e5b9ULL;

		assert_int_equal(
		    profile_add_location(p, &(struct profile_location){.address = scattered}), i);
		assert_int_equal(profile_add_function(p, &(struct profile_function){.start_line = i}), i);
		assert_int_equal(profile_add_mapping(p, &(struct profile_mapping){.limit = i}), i);
		assert_string_equal(profile_add_string(p, text, (size_t)len), text);
	}
	for (i = 1; i <= ENTRIES; i++) {
		struct profile_line line = {.function = 1, .line = i};
		struct profile_location location = {.lines = &line, .line_count = 1};

		assert_int_equal(profile_add_location(p, &location), ENTRIES + i);
	}
	profile_free(p);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* Adds this kind of entry until there is no memory: that must become the profile's error, and stay. */
static int exhaust(int kind)
{
	struct profile *p = profile_new();
	struct rlimit limit = {64 << 20, 64 << 20};
	uint8_t *data;
	char text[4096];
	size_t len;
	uint32_t i;

	memset(text, 'x', sizeof(text));
	profile_add_sample_type(p, "n", "count");
	profile_add_location(p, &(struct profile_location){.address = 1});
	if (setrlimit(RLIMIT_AS, &limit))
		return 1;
	for (i = 2; i < 100000000 && !profile_error(p); i++) {
		struct profile_label label = {.key = "k", .num = i};

		memcpy(text, &i, sizeof(i));
		if (kind == 0)
			profile_add_string(p, text, sizeof(text));
		else if (kind == 1)
			profile_add_mapping(p, &(struct profile_mapping){.start = i});
		else if (kind == 2)
			profile_add_function(p, &(struct profile_function){.start_line = i});
		else if (kind == 3)
			profile_add_location(p, &(struct profile_location){.address = i});
		else if (kind == 4)
			profile_add_sample(p, (uint32_t[]){1}, 1, (int64_t[]){1}, &label, 1);
		else if (kind == 5)
			profile_add_comment(p, "x");
		else
			profile_add_sample_type(p, "n", "count");
	}
	if (profile_error(p) != -ENOMEM || encode_profile(p, &data, &len) != -ENOMEM)
		return 2;
	profile_free(p);
	return 0;
}

static void running_out_of_memory_sticks_as_an_error(void **state)
{
	int kind, status;

#ifdef SANITIZED
	print_message("a sanitizer needs more address space than the test leaves\n");
	skip();
#endif
	for (kind = 0; kind <= 6; kind++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid)
			_exit(exhaust(kind));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void a_location_is_named_later(void **state)
{
	struct profile *p = profile_new();
	uint32_t one = profile_add_location(p, &(struct profile_location){.address = 1});
	uint32_t two = profile_add_location(p, &(struct profile_location){.address = 2});
	const struct profile_line lines[2] = {
	    {.function = profile_add_function(p, &(struct profile_function){.name = "inner"}), .line = 3},
	    {.function = profile_add_function(p, &(struct profile_function){.name = "outer"}), .line = 4}};
	const struct profile_line unknown = {.function = 99};

	assert_int_equal(profile_name_location(p, one, lines, 2), 0);
	assert_int_equal(profile_location(p, one).line_count, 2);
	assert_int_equal(profile_location(p, one).address, 1);
	assert_string_equal(profile_function(p, profile_location(p, one).lines[1].function).name, "outer");
	assert_int_equal(profile_location(p, two).line_count, 0);
	assert_int_equal(profile_error(p), 0);
	assert_int_equal(profile_name_location(p, two, &unknown, 1), -EINVAL);
	assert_int_equal(profile_name_location(p, 3, lines, 1), -EINVAL);
	assert_int_equal(profile_error(p), -EINVAL);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equal_strings_are_one_pointer),
	    cmocka_unit_test(strings_survive_the_table_growing),
	    cmocka_unit_test(a_string_is_made_valid_utf8),
	    cmocka_unit_test(functions_and_mappings_are_deduplicated),
	    cmocka_unit_test(locations_differ_by_mapping_address_and_lines),
	    cmocka_unit_test(equal_stacks_with_equal_labels_are_summed),
	    cmocka_unit_test(labels_in_any_order_are_one_set),
	    cmocka_unit_test(labels_read_back),
	    cmocka_unit_test(sums_saturate),
	    cmocka_unit_test(wrong_ids_stick_as_an_error),
	    cmocka_unit_test(types_come_before_samples),
	    cmocka_unit_test(flags_follow_from_the_locations),
	    cmocka_unit_test(the_header_reads_back),
	    cmocka_unit_test(many_samples_are_told_apart),
	    cmocka_unit_test(entries_with_equal_hashes_are_told_apart),
	    cmocka_unit_test(running_out_of_memory_sticks_as_an_error),
	    cmocka_unit_test(a_location_is_named_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

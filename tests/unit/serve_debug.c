/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* /debug/pprof: what is asked, and what is made of profiles. */
#include "pprof/codec/decode.h"
#include "pprof/codec/encode.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/profile.h"
#include "serve/blob.h"
#include "serve/debug_answer.h"
#include "serve/request.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "200" or "400 what Go says". */
static void plan_of(const char *target, struct debug_plan *plan, char *said, size_t bytes)
{
	struct reply reply = {0};
	struct route route;
	const char *name;

	assert_int_equal(route_parse(&route, target), 0);
	name = strrchr(endpoint_find(&route)->path, '/') + 1;
	if (debug_answer_plan(plan, name, &route.parameters, &reply))
		snprintf(said, bytes, "200");
	else
		snprintf(said, bytes, "%u %.*s", reply.status, (int)reply.body->length - 1,
		    (const char *)reply.body->bytes);
	reply_fini(&reply);
	route_fini(&route);
}

static void requests_are_judged_as_go_judges_them(void **state)
{
	static const struct {
		const char *target, *said;
		enum debug_kind kind;
		uint32_t seconds;
		bool text;
	} cases[] = {
	    {"/debug/pprof/", "200", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap", "200", DEBUG_HEAP, 0, false},
	    {"/debug/pprof/heap?gc=1&debug=0", "200", DEBUG_HEAP, 0, false},
	    {"/debug/pprof/heap?debug=x", "200", DEBUG_HEAP, 0, false},
	    {"/debug/pprof/heap?debug=2", "200", DEBUG_HEAP, 0, true},
	    {"/debug/pprof/heap?debug=99999999999999999999", "200", DEBUG_HEAP, 0, true},
	    {"/debug/pprof/heap?seconds=", "200", DEBUG_HEAP, 0, false},
	    {"/debug/pprof/heap?seconds=5", "200", DEBUG_DIFFERENCE, 5, false},
	    {"/debug/pprof/heap?seconds=600", "200", DEBUG_DIFFERENCE, 600, false},
	    {"/debug/pprof/allocs?seconds=%2B5", "200", DEBUG_DIFFERENCE, 5, false},
	    {"/debug/pprof/heap?seconds=601", "400 profile duration exceeds server's WriteTimeout",
	        DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap?seconds=0", "400 invalid value for \"seconds\" - must be a positive integer",
	        DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap?seconds=1.5",
	        "400 invalid value for \"seconds\" - must be a positive integer", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap?seconds=9223372036854775808",
	        "400 invalid value for \"seconds\" - must be a positive integer", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap?seconds=5&debug=1", "400 seconds and debug params are incompatible",
	        DEBUG_INDEX, 0, false},
	    {"/debug/pprof/delta_heap?seconds=5",
	        "400 \"seconds\" parameter is not supported for this profile type", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/block?seconds=x", "404 Unknown profile", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/goroutine", "404 Unknown profile", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/heap/x", "404 Unknown profile", DEBUG_INDEX, 0, false},
	    {"/debug/pprof/profile", "200", DEBUG_CPU, 30, false},
	    {"/debug/pprof/profile?seconds=-1", "200", DEBUG_CPU, 30, false},
	    {"/debug/pprof/profile?seconds=2&debug=1", "200", DEBUG_CPU, 2, false},
	    {"/debug/pprof/profile?seconds=99999999999999999999", "200", DEBUG_CPU, 30, false},
	    {"/debug/pprof/profile?seconds=601", "400 profile duration exceeds server's WriteTimeout",
	        DEBUG_INDEX, 0, false},
	    {"/debug/pprof/cmdline?seconds=x", "200", DEBUG_CMDLINE, 0, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct debug_plan plan = {0};
		char said[256];

		plan_of(cases[i].target, &plan, said, sizeof(said));
		assert_string_equal(said, cases[i].said);
		if (strcmp(said, "200") != 0)
			continue;
		assert_int_equal(plan.kind, cases[i].kind);
		assert_int_equal(plan.seconds, cases[i].seconds);
		assert_int_equal(plan.text, cases[i].text);
	}
}

/* Two stacks, f and g, each called by main; values of the four types. */
static struct profile *make(int64_t time_ns, const int64_t f[4], const int64_t g[4])
{
	static const char *const types[4][2] = {{"alloc_objects", "count"}, {"alloc_space", "bytes"},
	    {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
	struct profile *p = profile_new();
	uint32_t mapping, frames[3];

	for (size_t i = 0; i < 4; i++)
		profile_add_sample_type(p, types[i][0], types[i][1]);
	profile_set_default_sample_type(p, "inuse_space");
	profile_set_period(p, "space", "bytes", 1);
	profile_set_time(p, time_ns, 0);
	mapping = profile_add_mapping(p,
	    &(struct profile_mapping){
	        .start = 0x1000, .limit = 0x9000, .filename = "/bin/x", .build_id = ""});
	for (uint32_t i = 0; i < 3; i++) {
		static const char *const names[] = {"main", "f", "g"};
		const struct profile_function function = {names[i], names[i], "/x.c", 1};
		const struct profile_line line = {profile_add_function(p, &function), 10 + i, 0};
		const struct profile_location location = {
		    .mapping = mapping, .address = 0x2000 + 0x10 * i, .lines = &line, .line_count = 1};

		frames[i] = profile_add_location(p, &location);
	}
	if (f)
		profile_add_sample(p, (uint32_t[]){frames[1], frames[0]}, 2, f, NULL, 0);
	if (g)
		profile_add_sample(p, (uint32_t[]){frames[2], frames[0]}, 2, g, NULL, 0);
	assert_int_equal(profile_error(p), 0);
	return p;
}

static const int64_t *values_of(const struct profile *p, const char *function)
{
	for (size_t i = 0; i < profile_sample_count(p); i++) {
		struct profile_sample sample = profile_sample(p, i);
		struct profile_location leaf = profile_location(p, sample.locations[0]);

		if (strcmp(profile_function(p, leaf.lines[0].function).name, function) == 0)
			return sample.values;
	}
	return NULL;
}

static void assert_values(const struct profile *p, const char *function, const int64_t wanted[4])
{
	const int64_t *values = values_of(p, function);

	assert_non_null(values);
	for (int i = 0; i < 4; i++)
		assert_int_equal(values[i], wanted[i]);
}

static void a_difference_is_last_minus_first(void **state)
{
	struct profile *first = make(1000, (int64_t[]){5, 50, 3, 30}, NULL);
	struct profile *last = make(4000, (int64_t[]){9, 90, 1, 10}, (int64_t[]){2, 20, 2, 20}), *out;

	assert_int_equal(debug_answer_difference(first, last, false, false, &out), 0);
	assert_values(out, "f", (int64_t[]){4, 40, -2, -20});
	assert_values(out, "g", (int64_t[]){2, 20, 2, 20});
	assert_int_equal(profile_time_ns(out), 4000);
	assert_int_equal(profile_duration_ns(out), 3000);
	profile_free(out);
	assert_int_equal(debug_answer_difference(first, last, true, false, &out), 0);
	assert_values(out, "f", (int64_t[]){4, 40, 1, 10});
	profile_free(out);
	assert_int_equal(debug_answer_difference(NULL, last, true, false, &out), 0);
	assert_values(out, "f", (int64_t[]){9, 90, 1, 10});
	profile_free(out);
	assert_int_equal(debug_answer_difference(NULL, last, true, true, &out), 0);
	assert_values(out, "f", (int64_t[]){0, 0, 1, 10});
	assert_true(profile_duration_ns(out) > 0);
	profile_free(out);
	profile_free(first);
	profile_free(last);
}

/* A daemon that was started again knows no stack of what was freed before: no total falls by that. */
static void a_total_moves_to_another_stack(void **state)
{
	struct profile *first = make(1000, (int64_t[]){10, 100, 3, 30}, (int64_t[]){1, 10, 0, 0}),
	               *last = make(4000, (int64_t[]){4, 40, 3, 30}, (int64_t[]){9, 90, 0, 0}), *out;

	(void)state;
	assert_int_equal(debug_answer_difference(first, last, true, false, &out), 0);
	assert_values(out, "f", (int64_t[]){0, 0, 3, 30});
	assert_values(out, "g", (int64_t[]){2, 20, 0, 0});
	profile_free(out);
	/* Less than before, as of one who says less: nothing. */
	assert_int_equal(debug_answer_difference(last, first, true, false, &out), 0);
	assert_values(out, "f", (int64_t[]){0, 0, 3, 30});
	profile_free(out);
	profile_free(first);
	profile_free(last);
}

static char *text_of(bool (*write)(FILE *out, const struct profile *p), const struct profile *p)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_true(write(out, p));
	fclose(out);
	return text;
}

static void a_heap_as_text_is_what_gperftools_reads(void **state)
{
	struct profile *p = make(1, (int64_t[]){9, 90, 1, 10}, NULL);
	char *text = text_of(debug_answer_write_heap, p);

	assert_string_equal(text,
	    "heap profile: 1: 10 [9: 90] @ heapprofile\n"
	    "1: 10 [9: 90] @ 0x2011 0x2001\n"
	    "#\t0x2010\tf\t/x.c:11\n#\t0x2000\tmain\t/x.c:10\n\n"
	    "MAPPED_LIBRARIES:\n1000-9000 r-xp 00000000 00:00 0 /bin/x\n");
	free(text);
	profile_free(p);
}

static void addresses_have_names(void **state)
{
	struct profile *p = make(1, NULL, (int64_t[]){1, 1, 1, 1});
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	/* as in the profile, a return address, decimal, unknown, nonsense, octal */
	assert_int_equal(debug_answer_write_symbols(out, "0x2020+0x2001+8192+0x9+zz++0X2010+020020", p), 0);
	fclose(out);
	assert_string_equal(text, "num_symbols: 1\n0x2020 g\n0x2001 main\n0x2000 main\n0x2010 f\n0x2010 f\n");
	free(text);
	profile_free(p);
}

static void profiles_of_an_answer_share_one_bound(void **state)
{
	static const int64_t some[4] = {1, 2, 3, 4};
	struct profile *profile = make(1, some, some), *kept[64];
	struct blob_budget budget = {.left_bytes = SIZE_MAX / 2};
	size_t length, one, count = 0;
	struct blob *blob;
	uint8_t *bytes;
	int err;

	(void)state;
	assert_int_equal(encode_profile(profile, &bytes, &length), 0);
	profile_free(profile);
	blob = blob_new(bytes, length);
	assert_int_equal(blob_decode(blob, &budget, &profile), 0);
	one = profile_bytes(profile);
	assert_true(one > 0 && budget.left_bytes == SIZE_MAX / 2 - one);
	profile_free(profile);
	budget.left_bytes = 32 * one;
	while ((err = blob_decode(blob, &budget, &kept[count])) == 0 && count < 63)
		count++;
	assert_int_equal(err, -EFBIG);
	assert_true(count > 0 && count <= 32);
	while (count)
		profile_free(kept[--count]);
	blob_drop(blob);
}

/* A sampler of another user sends profiles that are small in the end and long to read: what was read of all
 * of them has a bound. */
static void foreign_profiles_share_what_is_read(void **state)
{
	enum { JUNK = 1 << 20 };
	static const int64_t some[4] = {1, 2, 3, 4};
	static const uint8_t head[] = {
	    0xa2, 0x06, 0x80, 0x80, 0x40}; /* field 100, which nobody knows: JUNK bytes */
	struct blob_budget budget = {SIZE_MAX / 2, (size_t)16 * JUNK};
	struct profile *profile = make(1, some, some);
	size_t length, packed_length, count = 0;
	uint8_t *bytes, *packed;
	struct blob *blob;
	int err;

	(void)state;
	assert_int_equal(encode_profile(profile, &bytes, &length), 0);
	profile_free(profile);
	bytes = realloc(bytes, length + sizeof(head) + JUNK);
	assert_non_null(bytes);
	memcpy(bytes + length, head, sizeof(head));
	memset(bytes + length + sizeof(head), 0, JUNK);
	assert_int_equal(
	    gzip_encode(bytes, length + sizeof(head) + JUNK, GZIP_LEVEL_FAST, &packed, &packed_length), 0);
	free(bytes);
	blob = blob_new(packed, packed_length);
	blob->foreign = true;
	while ((err = blob_decode(blob, &budget, &profile)) == 0 && count++ < 64)
		profile_free(profile);
	assert_int_equal(err, -EFBIG);
	assert_in_range(count, 8, 15);
	/* Those of others are not concerned. */
	blob->foreign = false;
	assert_int_equal(blob_decode(blob, &budget, &profile), 0);
	profile_free(profile);
	blob_drop(blob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(requests_are_judged_as_go_judges_them),
	    cmocka_unit_test(a_difference_is_last_minus_first),
	    cmocka_unit_test(a_total_moves_to_another_stack),
	    cmocka_unit_test(a_heap_as_text_is_what_gperftools_reads),
	    cmocka_unit_test(addresses_have_names),
	    cmocka_unit_test(profiles_of_an_answer_share_one_bound),
	    cmocka_unit_test(foreign_profiles_share_what_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

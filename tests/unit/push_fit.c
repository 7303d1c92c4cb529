/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* Folding to a server's limits: sums must come out the same. */
#include "pprof/analysis/since.h"
#include "pprof/codec/decode.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "push/fit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TYPES = 4, FUNCTIONS = 64 };

static struct profile *make(void)
{
	static const char *const types[TYPES][2] = {{"alloc_objects", "count"}, {"alloc_space", "bytes"},
	    {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
	struct profile *p = profile_new();

	for (int t = 0; t < TYPES; t++)
		profile_add_sample_type(p, types[t][0], types[t][1]);
	profile_set_period(p, "space", "bytes", 512);
	profile_set_time(p, 1000, 0);
	return p;
}

/* A stack of `depth` functions from number `first` on, in a file that lies at `base`. */
static void put(
    struct profile *p, uint64_t base, unsigned int first, size_t depth, int64_t count, const char *age)
{
	const struct profile_mapping mapping = {
	    .start = base, .limit = base + 0x10000, .filename = "/bin/x", .build_id = "abcd"};
	uint32_t stack[4096], map = profile_add_mapping(p, &mapping);
	const int64_t values[TYPES] = {count, count * 64, count / 2, count / 2 * 64};
	const struct profile_label labels[] = {
	    {.key = "bytes", .num = count, .unit = "bytes"}, {.key = "age", .str = age}};
	char name[32];

	for (size_t i = 0; i < depth; i++) {
		unsigned int number = (unsigned int)((first + i) % FUNCTIONS);

		snprintf(name, sizeof(name), "f%u", number);
		const struct profile_function function = {
		    .name = name, .system_name = name, .filename = "/x.c"};
		const struct profile_line line = {.function = profile_add_function(p, &function), .line = 1};
		const struct profile_location location = {
		    .mapping = map, .address = base + number * 16, .lines = &line, .line_count = 1};

		stack[i] = profile_add_location(p, &location);
	}
	assert_int_equal(profile_add_sample(p, stack, depth, values, labels, age ? 2 : 1), 0);
}

static int64_t sum(const struct profile *p, const int64_t *values, size_t type)
{
	int64_t total = 0;

	for (size_t i = 0; i < profile_sample_count(p); i++)
		total += values[i * TYPES + type];
	return total;
}

/* Folds and decodes; totals must be those of the input. */
static struct profile *fitted_profile(
    const struct profile *p, struct fit_limits limits, struct fitted *fitted)
{
	const bool types[TYPES] = {true, true, true, true};
	const struct origin live = {.ours = true, .kind = ORIGIN_LIVE};
	const struct since nothing = {0};
	int64_t fallen, *values = since_values(&nothing, p, &live, &fallen);
	const struct fit_input input = {
	    .profile = p, .values = values, .types = types, .time_ns = 1, .limits = &limits};
	struct profile *out;

	assert_int_equal(fit(&input, fitted), 0);
	assert_true(fitted->length <= limits.bytes);
	assert_int_equal(decode_profile(fitted->bytes, fitted->length, DECODE_MAX_BYTES, &out), DECODE_OK);
	assert_true(profile_sample_count(out) <= limits.samples);
	for (size_t t = 0; t < TYPES; t++) {
		int64_t total = 0;

		for (size_t i = 0; i < profile_sample_count(out); i++)
			total += profile_sample(out, i).values[t];
		assert_int_equal(total, sum(p, values, t));
	}
	for (size_t i = 0; i < profile_sample_count(out); i++)
		assert_true(profile_sample(out, i).depth <= limits.depth);
	fitted_fini(fitted);
	free(values);
	return out;
}

static void limits_are_met_and_totals_stay(void **state)
{
	static const struct fit_limits wide = {1 << 20, 10000, 1000, 65535, false};
	struct profile *p = make(), *out;
	struct fit_limits limits = wide;
	struct fitted fitted;

	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		put(p, 0x400000, i, 4, 2 * i + 2, "1s");
		put(p, 0x400000, i, 4, 2 * i + 1, "1s");
	}
	put(p, 0x400000, 0, 900, 5, NULL);
	out = fitted_profile(p, limits, &fitted);
	assert_int_equal(fitted.samples, 2 * FUNCTIONS + 1);
	assert_int_equal(fitted.other, 0);
	profile_free(out);
	/* Numbers apart, there are half as many. */
	limits.drop_numbers = true;
	out = fitted_profile(p, limits, &fitted);
	assert_int_equal(fitted.samples, FUNCTIONS + 1);
	profile_free(out);
	limits.samples = 20;
	limits.depth = 100;
	out = fitted_profile(p, limits, &fitted);
	assert_int_equal(fitted.samples, 19);
	assert_int_equal(fitted.other, FUNCTIONS + 1 - 19);
	profile_free(out);
	for (limits.bytes = 400; limits.bytes < 8000; limits.bytes += 37)
		profile_free(fitted_profile(p, limits, &fitted));
	limits = wide;
	limits.string_bytes = 2;
	out = fitted_profile(p, limits, &fitted);
	assert_true(fitted.strings_cut > 0);
	for (uint32_t id = 1; id <= profile_function_count(out); id++)
		assert_true(strlen(profile_function(out, id).name) <= 2);
	profile_free(out);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(limits_are_met_and_totals_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The parts behind heaptap report: errors worked out from sums, chance, suppressions, hashes of names. */
#include "sampler/cmd/report/report.h"
#include "pprof/analysis/column_diff.h"
#include "pprof/analysis/growth.h"
#include "pprof/analysis/leaks.h"
#include "pprof/analysis/row_label.h"
#include "pprof/analysis/totals.h"
#include "pprof/model/anonymous.h"
#include "pprof/model/estimate.h"
#include "pprof/model/profile.h"
#include "proto/weight.h"
#include "sampler/cmd/report/profile_input.h"
#include "sampler/linux/screen.h"
#include "sampler/unwind/stacks.h"
#include "sampler/write/symbolizer.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state = 0x123456789abcdef;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1d;
}

/* `count` blocks of `size` bytes, sampled at `period`: what a profile says of them. */
static void sample(uint64_t count, uint64_t size, uint64_t period, int64_t *objects, int64_t *bytes)
{
	double p = weight_probability((double)size / (double)period), taken = 0;

	for (uint64_t i = 0; i < count; i++)
		taken += (double)(draw() >> 11) * 0x1p-53 < p;
	*objects = llround(taken / p);
	*bytes = llround(taken / p * (double)size);
}

/* 95% intervals must hold the truth 95 times in 100, for small blocks, for large ones, and for mixtures. */
static void intervals_cover_the_truth(void **unused)
{
	static const struct {
		uint64_t count[2], size[2];
	} cases[] = {
	    {{20000, 0}, {64, 1}},
	    {{1000, 0}, {4096, 1}},
	    {{200, 0}, {100000, 1}},
	    {{10000, 200}, {64, 30000}},
	    {{5000, 20}, {1000, 500000}},
	};
	enum { RUNS = 2000 };

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		double truth = 0;
		int covered = 0;

		for (int i = 0; i < 2; i++)
			truth += (double)(cases[c].count[i] * cases[c].size[i]);
		for (int run = 0; run < RUNS; run++) {
			int64_t objects = 0, bytes = 0;
			struct estimate estimate;

			for (int i = 0; i < 2; i++) {
				int64_t some_objects, some_bytes;

				sample(
				    cases[c].count[i], cases[c].size[i], 16384, &some_objects, &some_bytes);
				objects += some_objects;
				bytes += some_bytes;
			}
			estimate = estimate_of((double)bytes, (double)objects, 0, 16384);
			covered += fabs((double)bytes - truth) <= 1.96 * sqrt(estimate.bytes_variance);
		}
		/* Mixtures err on the safe side. */
		if (covered < RUNS * 92 / 100)
			fail_msg("case %zu: %d of %d intervals cover the truth", c, covered, RUNS);
		if (c < 3)
			assert_true(covered < RUNS * 98 / 100);
	}
}

static void errors_of_known_cases(void **unused)
{
	struct estimate exact = estimate_of(1e6, 100, 0, 1),
	                small = estimate_of(50 << 20, 819200, 0, 512 << 10);
	struct estimate none = estimate_of(0, 0, 0, 4096), unsized = estimate_of(1 << 20, 0, 64, 4096);

	assert_true(exact.bytes_variance == 0 && exact.samples == 100);
	assert_true(fabs(sqrt(small.bytes_variance) / (5 << 20) - 1) < 0.001);
	assert_true(fabs(small.samples - 100) < 0.1);
	assert_true(none.samples == 0 && none.bytes_variance == 0);
	assert_true(fabs(unsized.samples - 254) < 3);
	assert_true(fabs(estimate_threshold(1) - 1.960) < 0.001);
	assert_true(fabs(estimate_threshold(100) - 3.481) < 0.001);
}

/* ---- columns */

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

/* A process with three sites over `columns` snapshots: one that leaks, one steady, a cache that fills and
 * stays. */
static void series_make(struct traces *t, size_t columns, uint64_t leaked)
{
	static const struct traces_options plain;
	int64_t leak[4] = {0}, steady[4] = {0}, cache[4] = {0}, objects, bytes;

	for (size_t column = 0; column < columns; column++) {
		struct profile *p = profile_make();

		sample(leaked, 64, 16384, &objects, &bytes);
		leak[0] += objects, leak[1] += bytes, leak[2] += objects, leak[3] += bytes;
		sample(20000, 64, 16384, &steady[2], &steady[3]);
		steady[0] += steady[2], steady[1] += steady[3];
		sample(column < columns / 2 ? 8000 : 0, 64, 16384, &objects, &bytes);
		cache[0] += objects, cache[1] += bytes, cache[2] += objects, cache[3] += bytes;
		profile_put(p, "leak", leak);
		profile_put(p, "steady", steady);
		profile_put(p, "cache", cache);
		if (column == 0)
			assert_int_equal(traces_init(t, &plain, p, columns), 0);
		assert_int_equal(traces_add(t, p, column), 0);
		profile_free(p);
	}
}

/* A stack of frames, leaf first, by their names' first letters. */
static void stack_put(struct profile *p, const char *stack, int64_t bytes)
{
	const int64_t values[4] = {1, bytes, 1, bytes};
	uint32_t ids[8];
	size_t depth = 0;

	for (; stack[depth]; depth++) {
		const char name[2] = {stack[depth], '\0'};
		const struct profile_function function = {.name = name, .system_name = name};
		const struct profile_line line = {.function = profile_add_function(p, &function)};
		const struct profile_location location = {
		    .address = (uint64_t)stack[depth], .lines = &line, .line_count = 1};

		ids[depth] = profile_add_location(p, &location);
	}
	assert_int_equal(profile_add_sample(p, ids, depth, values, NULL, 0), 0);
}

static uint32_t frame_of(const struct traces *t, char name)
{
	for (uint32_t i = 0; i < t->frames.count; i++)
		if (t->frames.rows[i].name[0] == name)
			return i;
	fail_msg("no frame %c", name);
	return 0;
}

static void callers_of_a_wrapper(void **unused)
{
	static const struct traces_options plain;
	struct profile *p = profile_make();
	struct callers callers;
	struct traces t;
	double values[8];

	stack_put(p, "wsam", 40);
	stack_put(p, "wsbm", 30);
	stack_put(p, "wcm", 20);
	stack_put(p, "w", 10); /* called by nobody that is known */
	stack_put(p, "sm", 1000);
	assert_int_equal(traces_init(&t, &plain, p, 1), 0);
	assert_int_equal(traces_add(&t, p, 0), 0);
	for (size_t row = 0; row < t.row_count; row++)
		values[row] = (double)traces_value(&t, row, 0, MEASURE_INUSE);
	assert_int_equal(callers_find(&callers, &t, values, frame_of(&t, 'w')), 0);
	assert_int_equal(callers.count, 3); /* all the way out */
	assert_int_equal(callers.frames[0], frame_of(&t, 's'));
	assert_int_equal(callers.frames[1], frame_of(&t, 'a'));
	assert_int_equal(callers.frames[2], frame_of(&t, 'm'));
	assert_true(fabs(callers.shares[0] - 0.7) < 1e-9 && fabs(callers.shares[2] - 0.4) < 1e-9);
	/* Of a difference: what shrinks counts as what grows does, and none is left at a third. */
	for (size_t row = 0; row < t.row_count; row++)
		values[row] = -1;
	assert_int_equal(callers_find(&callers, &t, values, frame_of(&t, 'w')), 0);
	assert_int_equal(callers.count, 1);
	assert_true(callers.frames[0] == frame_of(&t, 's') && fabs(callers.shares[0] - 0.5) < 1e-9);
	assert_int_equal(callers_find(&callers, &t, values, frame_of(&t, 'm')), 0);
	assert_int_equal(callers.count, 0);
	traces_fini(&t);
	profile_free(p);
}

static void growth_finds_leaks_and_only_leaks(void **unused)
{
	enum { RUNS = 200 };
	static const int64_t second_ns = 1000000000,
	                     times_ns[] = {0, second_ns, 2 * second_ns, 3 * second_ns, 4 * second_ns,
	                         5 * second_ns, 6 * second_ns};
	int found = 0, wrong = 0;

	for (int run = 0; run < RUNS; run++) {
		struct traces t;
		struct growth growth;

		series_make(&t, 7, run & 1 ? 4000 : 0);
		assert_int_equal(growth_make(&growth, &t, 0, times_ns, 7), 0);
		for (size_t i = 0; i < growth.growing_count; i++) {
			const char *name = t.frames.rows[growth.rows[i].frame].name;

			found += strcmp(name, "leak") == 0;
			wrong += strcmp(name, "leak") != 0;
		}
		growth_fini(&growth);
		assert_int_equal(growth_make(&growth, &t, 0, times_ns, TREND_POINTS_LEAST - 1), 0);
		assert_int_equal(growth.count, 0);
		growth_fini(&growth);
		traces_fini(&t);
	}
	assert_true(found >= RUNS / 2 * 95 / 100);
	assert_true(wrong <= RUNS * 5 / 100);
}

/* Snapshots may say any times, and all the same. */
static void growth_over_the_longest_time(void **unused)
{
	static int64_t times_ns[][6] = {{INT64_MIN, 0, 1, 2, 3, INT64_MAX}, {5, 5, 5, 5, 5, 5}};
	struct profile_input input = {.growth_count = 6};
	struct answer_facts facts = {.traces = &input.traces, .point_count = 6};
	struct answer answer;
	struct growth growth;

	for (size_t i = 0; i < 2; i++) {
		char *text;
		size_t bytes;
		struct screen screen = {.out = open_memstream(&text, &bytes), .width = 80};

		input.growth_times_ns = times_ns[i];
		series_make(&input.traces, 6, 8000);
		assert_int_equal(growth_make(&growth, &input.traces, 0, times_ns[i], 6), 0);
		facts.growth = &growth;
		facts.times_ns = times_ns[i];
		assert_int_equal(answer_make(&answer, &facts), 0);
		assert_string_not_equal(answer.grows, "");
		assert_int_equal(report_growth(&screen, &input, &growth, 10), 0);
		growth_fini(&growth);
		fclose(screen.out);
		for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
			assert_true(strcspn(line, "\n") <= 80);
		free(text);
		traces_fini(&input.traces);
	}
}

/* Of one process the allocations of both snapshots are the same samples: the difference is as sure as its own
 * part. */
static void differences_within_a_process_are_surer(void **unused)
{
	struct column_diff_options options = {.after = 1, .kind = MEASURE_ALLOC, .same_process = true};
	struct column_diff same, other;
	struct traces t;

	series_make(&t, 2, 4000);
	assert_int_equal(column_diff_make(&same, &t, &options), 0);
	options.same_process = false;
	assert_int_equal(column_diff_make(&other, &t, &options), 0);
	assert_true(same.sum.variance < other.sum.variance);
	assert_true(same.sum.after == other.sum.after);
	column_diff_fini(&same);
	column_diff_fini(&other);
	traces_fini(&t);
}

static void recursion_counts_once(void **unused)
{
	static const struct traces_options plain;
	static const int64_t values[4] = {1, 100, 1, 100};
	struct profile *p = profile_make();
	const struct profile_function function = {.name = "again"};
	const struct profile_line line = {.function = profile_add_function(p, &function)};
	const struct profile_location location = {.address = 1, .lines = &line, .line_count = 1};
	uint32_t stack[3];
	struct totals totals;
	struct traces t;

	stack[0] = stack[1] = stack[2] = profile_add_location(p, &location);
	profile_add_sample(p, stack, 3, values, NULL, 0);
	assert_int_equal(traces_init(&t, &plain, p, 1), 0);
	assert_int_equal(traces_add(&t, p, 0), 0);
	assert_int_equal(totals_make(&totals, &t, 0, MEASURE_INUSE), 0);
	assert_int_equal(totals.rows[0].cum.value, 100);
	assert_int_equal(totals.rows[0].flat.value, 100);
	totals_fini(&totals);
	traces_fini(&t);
	profile_free(p);
}

/* A row of a thousand columns takes 100 KB: the limit holds before it is made, not after the profile. */
static void the_limit_holds_for_many_columns(void **unused)
{
	enum { COLUMNS = 1000, STACKS = 1000, LIMIT_BYTES = 16 << 20 };
	static const struct traces_options limited = {.max_bytes = LIMIT_BYTES};
	static const int64_t values[4] = {1, 100, 1, 100};
	struct profile *p = profile_make();
	struct traces t;

	for (uint32_t i = 0; i < STACKS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", (unsigned)i);
		const struct profile_function function = {.name = name};
		const struct profile_line line = {.function = profile_add_function(p, &function)};
		const struct profile_location location = {.address = i + 1, .lines = &line, .line_count = 1};
		const uint32_t leaf = profile_add_location(p, &location);

		profile_add_sample(p, &leaf, 1, values, NULL, 0);
	}
	assert_int_equal(traces_init(&t, &limited, p, COLUMNS), 0);
	assert_int_equal(traces_add(&t, p, 0), -EFBIG);
	assert_true(t.row_count > 10);
	assert_true(
	    t.value_capacity * sizeof(*t.values) + t.estimate_capacity * sizeof(*t.estimates) <= LIMIT_BYTES);
	traces_fini(&t);
	profile_free(p);
}

/* ---- names */

static void suppressions_match_as_in_lsan(void **unused)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
	    {"foo", "xfoox", true},
	    {"foo", "fo", false},
	    {"^foo", "foobar", true},
	    {"^foo", "xfoo", false},
	    {"foo$", "xfoo", true},
	    {"foo$", "foox", false},
	    {"^foo$", "foo", true},
	    {"^foo$", "foofoo", false},
	    {"f*o", "xfzzoz", true},
	    {"^f*o$", "fxxo", true},
	    {"^f*o$", "fxxoz", false},
	    {"a*b*c", "1a2b3c4", true},
	    {"a*b*c", "acb", false},
	    {"*", "", true},
	    {"lib*.so", "/usr/lib/libx.so.1", true},
	    {"^a*a$", "a", false},
	    {"foo*", "foo", true},
	    {"*foo", "foo", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (suppressions_pattern(cases[i].pattern, cases[i].text) != cases[i].matches)
			fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].text);
}

static void suppressions_are_read_by_line(void **unused)
{
	static const char good[] = "# comment\n\n  leak:foo \r\nleak:bar", bad[] = "leak:foo\nrace:x\n";
	struct suppressions s = {0};
	size_t line;

	assert_int_equal(suppressions_add(&s, good, strlen(good), &line), 0);
	assert_int_equal(s.count, 2);
	assert_string_equal(s.patterns[0], "foo");
	assert_int_equal(suppressions_add(&s, bad, strlen(bad), &line), -EINVAL);
	assert_int_equal(line, 2);
	suppressions_fini(&s);
}

static void hashes_are_the_same_everywhere(void **unused)
{
	char buffer[ANONYMOUS_BYTES];

	assert_string_equal(anonymous_name('f', "main", buffer), "f_a72fa91406d86c0f");
	assert_string_equal(anonymous_name('f', "[lost stack]", buffer), "[lost stack]");
	assert_string_equal(anonymous_name('f', "", buffer), "");
}

/* What begins like a marker and tells of the program: Rust's methods of traits, mappings that it named. */
static void only_markers_are_not_hashed(void **unused)
{
	static const char *const secrets[] = {"<acme_billing::Secret as core::fmt::Debug>::fmt",
	    "<acme::Pool<T>>::grow", "[acme::T]::sort", "<acme>", "[anon:acme billing]", "[acme-worker]",
	    "[lost stack] of acme"};
	static const char *const markers[] = {STACK_BEFORE_RESTART, STACK_LOST_SAMPLES, STACK_NONE,
	    SYMBOLIZER_MMAP, "[heaptap]", "[vdso]", "[anon:jit]", "[hidden]", "[jit]", "<unknown>", "[freed]",
	    "[no size known]"};
	char buffer[ANONYMOUS_BYTES];

	for (size_t i = 0; i < sizeof(secrets) / sizeof(*secrets); i++) {
		const char *shown = anonymous_name('f', secrets[i], buffer);

		assert_ptr_equal(shown, buffer);
		assert_int_equal(strlen(shown), 2 + 16);
		assert_null(strstr(shown, "acme"));
	}
	for (size_t i = 0; i < sizeof(markers) / sizeof(*markers); i++)
		assert_string_equal(anonymous_name('f', markers[i], buffer), markers[i]);
	for (unsigned i = 0; i < UNWIND_COUNTS; i++) {
		const char *marker = unwind_marker((enum unwind_outcome)i);

		if (marker)
			assert_string_equal(anonymous_name('f', marker, buffer), marker);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(intervals_cover_the_truth),
	    cmocka_unit_test(errors_of_known_cases),
	    cmocka_unit_test(callers_of_a_wrapper),
	    cmocka_unit_test(growth_finds_leaks_and_only_leaks),
	    cmocka_unit_test(growth_over_the_longest_time),
	    cmocka_unit_test(differences_within_a_process_are_surer),
	    cmocka_unit_test(recursion_counts_once),
	    cmocka_unit_test(the_limit_holds_for_many_columns),
	    cmocka_unit_test(suppressions_match_as_in_lsan),
	    cmocka_unit_test(suppressions_are_read_by_line),
	    cmocka_unit_test(hashes_are_the_same_everywhere),
	    cmocka_unit_test(only_markers_are_not_hashed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

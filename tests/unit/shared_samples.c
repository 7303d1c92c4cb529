/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of sums over forked processes, whose profiles have samples in common; and over states of one. */
#include "pprof/analysis/column_diff.h"
#include "pprof/analysis/filter.h"
#include "pprof/analysis/merge.h"
#include "pprof/analysis/totals.h"
#include "pprof/model/estimate.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/text/pattern.h"
#include "proto/weight.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	CHILDREN = 10,
	BLOCKS = 1000,
	BLOCK_BYTES = 1000,
	OWN = 100,
	PERIOD = 16384,
	PARENT = 100,
	RUNS = 1000
};

static uint64_t state = 0x123456789abcdef;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1d;
}

/* So many blocks, sampled: objects. */
static int64_t sample(int blocks)
{
	double p = weight_probability((double)BLOCK_BYTES / PERIOD), taken = 0;

	for (int i = 0; i < blocks; i++)
		taken += (double)(draw() >> 11) * 0x1p-53 < p;
	return llround(taken / p);
}

static struct profile *profile_make(int session, int pid, const char *cause)
{
	static const char *const types[4][2] = {{"alloc_objects", "count"}, {"alloc_space", "bytes"},
	    {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
	struct profile *p = profile_new();
	char text[128];

	for (int i = 0; i < 4; i++)
		profile_add_sample_type(p, types[i][0], types[i][1]);
	profile_set_period(p, "space", "bytes", PERIOD);
	profile_add_comment(p, "heaptap 0.1.0");
	snprintf(text, sizeof(text), "pid=%d comm=family host=box", pid);
	profile_add_comment(p, text);
	snprintf(text, sizeof(text), ORIGIN_IDENTITY_FORMAT, (int64_t)session, 1, (int64_t)pid * 1000);
	profile_add_comment(p, text);
	snprintf(text, sizeof(text), "snapshot: %s", cause);
	profile_add_comment(p, text);
	return p;
}

enum { ITS_OWN = -1, OF_UNKNOWN = 0 };

/* from: whose blocks they are */
static void put(struct profile *p, const char *name, int64_t objects, int from)
{
	const struct profile_function function = {.name = name, .system_name = name};
	const struct profile_line line = {.function = profile_add_function(p, &function)};
	const struct profile_location location = {
	    .address = (uintptr_t)name[0], .lines = &line, .line_count = 1};
	const struct profile_label labels[] = {
	    {.key = "inherited", .str = "yes"}, {.key = ORIGIN_LABEL_FROM, .num = from, .unit = ""}};
	int64_t bytes = objects * BLOCK_BYTES;
	const int64_t own[] = {objects, bytes, objects, bytes}, inherited[] = {0, 0, objects, bytes};
	uint32_t id = profile_add_location(p, &location);

	assert_int_equal(profile_add_sample(p, &id, 1, from == ITS_OWN ? own : inherited, labels,
	                     from == ITS_OWN          ? 0
	                         : from == OF_UNKNOWN ? 1
	                                              : 2),
	    0);
}

struct family {
	struct profile *profiles[CHILDREN + 1];
};

/* A process keeps blocks, then forks children that hold them too and keep some of their own; what the parent
 * allocates later, nobody else has. told: the profiles say whose the inherited blocks are. */
static struct family family_make(int session, bool told)
{
	struct family f = {{profile_make(session, PARENT, "exit")}};
	int64_t shared = sample(BLOCKS);

	put(f.profiles[0], "keep", shared, ITS_OWN);
	put(f.profiles[0], "late", sample(OWN), ITS_OWN);
	for (int i = 1; i <= CHILDREN; i++) {
		f.profiles[i] = profile_make(session, PARENT + i, "exit");
		put(f.profiles[i], "keep", shared, told ? PARENT : OF_UNKNOWN);
		put(f.profiles[i], "own", sample(OWN), ITS_OWN);
	}
	return f;
}

static double truth(void)
{
	return (double)BLOCK_BYTES * (BLOCKS * (CHILDREN + 1) + OWN * (CHILDREN + 1));
}

static void family_free(struct family *f)
{
	for (int i = 0; i <= CHILDREN; i++)
		profile_free(f->profiles[i]);
}

/* As a command reads them. */
static void traces_make(struct traces *t, const struct traces_options *options,
    struct profile *const *const *columns, const size_t *counts, size_t column_count)
{
	static const struct traces_options plain;

	assert_int_equal(traces_init(t, options ? options : &plain, columns[0][0], column_count), 0);
	for (size_t c = 0; c < column_count; c++)
		for (size_t i = 0; i < counts[c]; i++)
			assert_int_equal(traces_expect(t, columns[c][i], c), 0);
	for (size_t c = 0; c < column_count; c++)
		for (size_t i = 0; i < counts[c]; i++)
			assert_int_equal(traces_add(t, columns[c][i], c), 0);
	assert_int_equal(traces_finish(t), 0);
}

static void one_column(
    struct traces *t, const struct traces_options *options, struct profile *const *profiles, size_t count)
{
	traces_make(t, options, &profiles, &count, 1);
}

static double error_of(struct profile *const *profiles, size_t count, enum measure_kind kind)
{
	struct traces t;
	double error;

	one_column(&t, NULL, profiles, count);
	error = sqrt(traces_doubt_all(&t, 0, kind).variance);
	assert_true(fabs(error - sqrt(traces_doubt_selected(&t, 0, kind).variance)) <= 1e-6 * error);
	traces_fini(&t);
	return error;
}

/* The squares of the deviations, in units of the error that is given, add up to as many as there are runs.
 * Their sum has a standard deviation of sqrt(2 RUNS): five of these are one chance in a million. */
static void errors_are_those_of_the_truth(void **unused)
{
	double squares = 0, unspread = 0;

	for (int run = 0; run < RUNS; run++) {
		struct family f = family_make(1, true);
		struct traces t;
		struct traces_doubt doubt;
		double off;

		one_column(&t, NULL, f.profiles, CHILDREN + 1);
		doubt = traces_doubt_all(&t, 0, MEASURE_INUSE);
		off = (double)traces_all(&t, 0, MEASURE_INUSE) - truth();
		squares += off * off / doubt.variance;
		/* What was allocated is each process' own. */
		doubt = traces_doubt_all(&t, 0, MEASURE_ALLOC);
		off =
		    (double)traces_all(&t, 0, MEASURE_ALLOC) - BLOCK_BYTES * (BLOCKS + OWN * (CHILDREN + 1));
		unspread += off * off / doubt.variance;
		assert_false(t.is_bound);
		traces_fini(&t);
		family_free(&f);
	}
	if (fabs(squares - RUNS) > 5 * sqrt(2 * RUNS) || fabs(unspread - RUNS) > 5 * sqrt(2 * RUNS))
		fail_msg("squares of deviations: in use %.2f, allocated %.2f of the variance given",
		    squares / RUNS, unspread / RUNS);
}

static void a_difference_of_two_recordings_is_chance(void **unused)
{
	const size_t counts[] = {CHILDREN + 1, CHILDREN + 1};
	int rows = 0, totals = 0;

	for (int run = 0; run < RUNS; run++) {
		struct family base = family_make(1, true), new = family_make(2, true);

		struct profile *const *const columns[] = {base.profiles, new.profiles};
		struct column_diff_options options = {.after = 1, .kind = MEASURE_INUSE};
		struct column_diff compared;
		struct traces t;
		bool sure = false;

		traces_make(&t, NULL, columns, counts, 2);
		assert_int_equal(column_diff_make(&compared, &t, &options), 0);
		for (size_t i = 0; i < compared.count; i++)
			sure = sure || column_diff_is_sure(&compared.rows[i].flat, compared.threshold);
		rows += sure;
		totals += column_diff_is_sure(&compared.sum, estimate_threshold(1));
		column_diff_fini(&compared);
		traces_fini(&t);
		family_free(&base);
		family_free(&new);
	}
	/* 5% each, with five standard deviations of chance. */
	if (rows > RUNS / 20 + 5 * sqrt(RUNS / 20.) || totals > RUNS / 20 + 5 * sqrt(RUNS / 20.))
		fail_msg("beyond chance in %d runs, the total in %d, of %d", rows, totals, RUNS);
}

/* Rows by process have the same samples, and so has their sum. */
static void a_total_is_as_sure_however_it_is_split(void **unused)
{
	const struct traces_options options = {.by = GROUP_PROCESS};
	struct family f = family_make(1, true);
	double error = error_of(f.profiles, CHILDREN + 1, MEASURE_INUSE), rows = 0;
	struct totals totals;
	struct traces t;

	one_column(&t, &options, f.profiles, CHILDREN + 1);
	assert_int_equal(t.row_count, CHILDREN + 1);
	assert_int_equal(totals_make(&totals, &t, 0, MEASURE_INUSE), 0);
	assert_true(fabs(sqrt(totals.sum.variance) / error - 1) < 1e-6);
	for (size_t i = 0; i < totals.count; i++)
		rows += totals.rows[i].flat.variance;
	assert_true(sqrt(rows) < 0.5 * error);
	totals_fini(&totals);
	traces_fini(&t);
	family_free(&f);
}

static void few_samples_stay_few(void **unused)
{
	struct profile *profiles[] = {profile_make(1, PARENT, "exit"), profile_make(1, PARENT + 1, "exit"),
	    profile_make(1, PARENT + 2, "exit")};
	const double p = weight_probability((double)BLOCK_BYTES / PERIOD);
	struct traces t;

	for (int i = 0; i < 3; i++)
		put(profiles[i], "keep", llround(2 / p), i ? PARENT : ITS_OWN);
	one_column(&t, NULL, profiles, 3);
	assert_true(fabs(traces_doubt(&t, 0, 0, MEASURE_INUSE).samples - 2) < 0.1);
	traces_fini(&t);
	for (int i = 0; i < 3; i++)
		profile_free(profiles[i]);
}

/* The error of the whole, and that of what is selected. */
static void a_selection_has_its_own_error(void **unused)
{
	struct filter filter = {0};
	const struct traces_options options = {.filter = &filter};
	struct family f = family_make(1, true);
	double error = error_of(f.profiles, CHILDREN + 1, MEASURE_INUSE);
	char words[256];
	struct traces t;

	assert_int_equal(pattern_new("^own$", 0, &filter.focus, words, sizeof(words)), 0);
	one_column(&t, &options, f.profiles, CHILDREN + 1);
	assert_true(fabs(sqrt(traces_doubt_all(&t, 0, MEASURE_INUSE).variance) / error - 1) < 1e-6);
	assert_true(sqrt(traces_doubt_selected(&t, 0, MEASURE_INUSE).variance) < 0.5 * error);
	assert_true(fabs(traces_doubt_selected(&t, 0, MEASURE_INUSE).variance /
	                    traces_doubt(&t, 0, 0, MEASURE_INUSE).variance -
	                1) < 1e-6);
	traces_fini(&t);
	pattern_free(filter.focus);
	family_free(&f);
}

/* Older profiles do not say whose blocks they have inherited: the error given is never too small. */
static void an_untold_origin_is_an_upper_bound(void **unused)
{
	uint64_t seed = state;
	struct family told = family_make(1, true), untold;
	double error = error_of(told.profiles, CHILDREN + 1, MEASURE_INUSE);
	double alloc = error_of(told.profiles, CHILDREN + 1, MEASURE_ALLOC);
	struct traces t;

	state = seed;
	untold = family_make(1, false);
	assert_true(error_of(untold.profiles, CHILDREN + 1, MEASURE_INUSE) >= error * (1 - 1e-9));
	assert_true(fabs(error_of(untold.profiles, CHILDREN + 1, MEASURE_ALLOC) / alloc - 1) < 1e-9);
	one_column(&t, NULL, untold.profiles, CHILDREN + 1);
	assert_true(t.is_bound);
	traces_fini(&t);
	/* Whichever comes first: keys are random, and those of the holders are made in their order. */
	for (size_t i = 1; i + 1 < CHILDREN; i++) {
		struct profile *pair[] = {untold.profiles[i + 1], untold.profiles[0]};

		one_column(&t, NULL, pair, 2);
		assert_true(t.is_bound);
		traces_fini(&t);
		struct profile *three[] = {untold.profiles[0], untold.profiles[i], untold.profiles[i + 1]};
		one_column(&t, NULL, three, 3);
		assert_true(t.is_bound);
		traces_fini(&t);
	}
	/* One of them alone has nothing twice. */
	one_column(&t, NULL, untold.profiles + 1, 1);
	assert_false(t.is_bound);
	traces_fini(&t);
	family_free(&told);
	family_free(&untold);
}

static struct profile *merged(struct profile *const *profiles, size_t count, bool anonymize)
{
	struct profile *sum;
	size_t culprit;

	assert_int_equal(merge_profiles(profiles, count, anonymize, &sum, &culprit), 0);
	return sum;
}

/* A merged profile, ours or another tool's, knows as much as the profiles in it, or says that it does not. */
static void a_merged_profile_keeps_its_error(void **unused)
{
	struct family f = family_make(1, true), old = family_make(1, false);
	struct profile *sums[] = {merged(f.profiles, CHILDREN + 1, false),
	    merged(f.profiles, CHILDREN + 1, true), merged(old.profiles, CHILDREN + 1, false)};
	double error = error_of(f.profiles, CHILDREN + 1, MEASURE_INUSE);
	double bound = error_of(old.profiles, CHILDREN + 1, MEASURE_INUSE);
	struct profile_label label;
	struct traces t;

	assert_true(fabs(error_of(&sums[0], 1, MEASURE_INUSE) / error - 1) < 1e-3);
	assert_true(fabs(error_of(&sums[1], 1, MEASURE_INUSE) / error - 1) < 1e-3);
	assert_true(error_of(&sums[2], 1, MEASURE_INUSE) >= bound * (1 - 1e-3));
	one_column(&t, NULL, &sums[2], 1);
	assert_true(t.is_bound);
	traces_fini(&t);
	for (int i = 0; i < 3; i++)
		profile_free(sums[i]);
	/* Without a fork nothing is kept apart. */
	sums[0] = merged((struct profile *const[]){f.profiles[0], f.profiles[0]}, 2, false);
	for (size_t i = 0; i < profile_sample_count(sums[0]); i++)
		assert_false(filter_label(sums[0], i, ORIGIN_LABEL_PID, &label));
	profile_free(sums[0]);
	family_free(&f);
	family_free(&old);
}

/* States of one process hold the same samples; its deltas, and other processes, do not. */
static void states_overlap_and_deltas_do_not(void **unused)
{
	static const struct {
		const char *cause;
		int second_pid;
		double factor;
	} cases[] = {{"0001, every 1 s", PARENT, 2}, {"delta, what was allocated", PARENT, M_SQRT2},
	    {"exit", PARENT + 1, M_SQRT2}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile *both[] = {profile_make(1, PARENT, cases[i].cause),
		    profile_make(1, cases[i].second_pid, cases[i].cause)};
		double one;

		put(both[0], "keep", BLOCKS, ITS_OWN);
		put(both[1], "keep", BLOCKS, ITS_OWN);
		one = error_of(both, 1, MEASURE_INUSE);
		assert_true(fabs(error_of(both, 2, MEASURE_INUSE) / one - cases[i].factor) < 1e-6);
		assert_true(fabs(error_of(both, 2, MEASURE_ALLOC) / one - cases[i].factor) < 1e-6);
		profile_free(both[0]);
		profile_free(both[1]);
	}
}

/* Grandchildren hold what the first parent has sampled, and what their own parent has; processes of another
 * session with the same numbers nothing of it. */
static void each_origin_for_itself(void **unused)
{
	const int pids[] = {PARENT, PARENT + 1, PARENT + 2};
	const double one = estimate_of(BLOCKS * BLOCK_BYTES, BLOCKS, 0, PERIOD).bytes_variance;
	struct profile *p[6];

	for (int i = 0; i < 6; i++) {
		p[i] = profile_make(1 + i / 3, pids[i % 3], "exit");
		put(p[i], "keep", BLOCKS, i % 3 ? PARENT : ITS_OWN);
		if (i % 3)
			put(p[i], "keep", BLOCKS, i % 3 == 1 ? ITS_OWN : PARENT + 1);
	}
	/* Three hold the first one's, two the second one's. */
	assert_true(fabs(error_of(p, 3, MEASURE_INUSE) / sqrt((9 + 4) * one) - 1) < 1e-6);
	assert_true(fabs(error_of(p, 6, MEASURE_INUSE) / sqrt(2 * (9 + 4) * one) - 1) < 1e-6);
	for (int i = 0; i < 6; i++)
		profile_free(p[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(errors_are_those_of_the_truth),
	    cmocka_unit_test(a_difference_of_two_recordings_is_chance),
	    cmocka_unit_test(a_total_is_as_sure_however_it_is_split),
	    cmocka_unit_test(few_samples_stay_few),
	    cmocka_unit_test(a_selection_has_its_own_error),
	    cmocka_unit_test(an_untold_origin_is_an_upper_bound),
	    cmocka_unit_test(a_merged_profile_keeps_its_error),
	    cmocka_unit_test(states_overlap_and_deltas_do_not),
	    cmocka_unit_test(each_origin_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

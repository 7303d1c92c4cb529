/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any profile through everything that is made of profiles: traces, totals, trees, differences, growth,
 * merging, and every format. What holds of all of them: the sum over functions' flat is the sum over stacks,
 * no cum is smaller in magnitude than what a non-negative profile's flat says, and what is merged can be
 * written and read.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/column_diff.h"
#include "pprof/analysis/filter.h"
#include "pprof/analysis/growth.h"
#include "pprof/analysis/leaks.h"
#include "pprof/analysis/merge.h"
#include "pprof/analysis/row_label.h"
#include "pprof/analysis/totals.h"
#include "pprof/analysis/tree.h"
#include "pprof/codec/decode.h"
#include "pprof/codec/encode.h"
#include "pprof/export/answer.h"
#include "pprof/export/format.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"

enum { MAX_BYTES = 1 << 24 };

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

static FILE *nowhere;

static void check_totals(const struct traces *t, enum measure_kind kind)
{
	struct totals totals;
	int64_t flat = 0, all = 0;

	REQUIRE(!totals_make(&totals, t, 0, kind));
	for (size_t i = 0; i < totals.count; i++)
		traces_sum(&flat, totals.rows[i].flat.value);
	for (size_t row = 0; row < t->row_count; row++)
		if (t->rows[row].depth)
			traces_sum(&all, traces_value(t, row, 0, kind));
	/* Sums that saturate depend on their order. */
	if (llabs(all) < INT64_MAX / 4 && llabs(flat) < INT64_MAX / 4)
		REQUIRE(flat == all);
	totals_sort(&totals, t, TOTALS_BY_CUM);
	totals_fini(&totals);
}

static void check_trees(const struct traces *t, enum measure_kind kind)
{
	for (int inverted = 0; inverted < 2; inverted++) {
		struct tree tree;

		REQUIRE(!tree_make(&tree, t, 0, kind, inverted));
		for (uint32_t i = 1; i < tree.count; i++)
			REQUIRE(tree.nodes[i].parent < i);
		tree_fini(&tree);
	}
}

static void write_all(const struct traces *t, enum measure_kind kind, const char *program)
{
	const int64_t time_ns[2] = {0, 1000000};
	int64_t objects = traces_all(t, 0, MEASURE_OBJECTS), inuse = traces_all(t, 0, MEASURE_INUSE_OBJECTS);
	uint64_t scale;
	const struct export_request request = {.kind = kind,
	    .title = program,
	    .program = program,
	    .series_count = 2,
	    .time_ns = time_ns,
	    .threshold_permille = 10,
	    .scale = &scale};

	for (size_t i = 0; export_format_names[i]; i++) {
		/* Millions of events are right, and slow here. */
		if (strcmp(export_format_names[i], "heaptrack") == 0 &&
		    (llabs(objects) >= 10000 || llabs(inuse) >= 10000))
			continue;
		REQUIRE(!export_formats[i].write(nowhere, t, &request));
	}
}

static void check_columns(const struct traces *t, enum measure_kind kind)
{
	for (unsigned int flags = 0; flags < 4; flags++) {
		const struct column_diff_options options = {
		    .after = 1, .kind = kind, .same_process = flags & 1, .normalize = flags & 2};
		struct column_diff compared;

		REQUIRE(!column_diff_make(&compared, t, &options));
		column_diff_fini(&compared);
	}
	for (size_t columns = 1; columns <= t->column_count; columns++) {
		static const int64_t times_ns[] = {1, 2, 3};
		struct growth growth;
		const int err = growth_make(&growth, t, 0, times_ns, columns < 3 ? columns : 3);

		REQUIRE(!err || err == -ENODATA);
		growth_fini(&growth);
	}
}

static void check_merge(struct profile *p, bool anonymize)
{
	struct profile *const both[2] = {p, p};
	struct profile *merged, *again;
	uint8_t *bytes;
	size_t len, culprit;

	if (merge_profiles(both, 2, anonymize, &merged, &culprit))
		return;
	REQUIRE(!encode_profile(merged, &bytes, &len));
	if (len) {
		REQUIRE(decode_profile(bytes, len, SIZE_MAX, &again) == DECODE_OK);
		profile_free(again);
	}
	free(bytes);
	profile_free(merged);
}

static void check_answer(const struct traces *t, const struct origin *origin)
{
	const struct answer_facts facts = {
	    .traces = t, .has_ended = true, .has_peak = true, .peak = 1, .unseen = origin->unseen};
	struct json json = {.out = nowhere};
	struct answer answer;

	REQUIRE(!answer_make(&answer, &facts));
	json_object(&json, NULL);
	answer_json(&json, &answer);
	json_end(&json);
}

static void look(struct profile *p, uint8_t choices)
{
	const struct filter filter = {.by_size = choices & 4, .size_max = 4096};
	const struct traces_options options = {.lines = choices & 1,
	    .anonymize = choices & 2,
	    .filter = choices & 8 ? &filter : NULL,
	    .names = (enum frames_names)(choices >> 4 & 3) % 3,
	    .by = (enum grouping)((choices & 16 ? choices >> 5 : 0) % 5),
	    .fold = choices & 64};
	struct origin origin;
	struct traces t;

	origin_read(&origin, p);
	REQUIRE(!traces_init(&t, &options, p, 3));
	for (size_t i = 0; i < 4; i++)
		REQUIRE(!traces_expect(&t, p, i % 3));
	for (size_t i = 0; i < 4; i++)
		REQUIRE(!traces_add(&t, p, i % 3));
	REQUIRE(!traces_finish(&t));
	if (choices & 128)
		REQUIRE(!row_label_choose(&t));
	for (int kind = 0; kind < MEASURE_COUNT; kind++) {
		if (!traces_has(&t, (enum measure_kind)kind))
			continue;
		REQUIRE(traces_doubt_all(&t, 0, (enum measure_kind)kind).variance >= 0);
		check_totals(&t, (enum measure_kind)kind);
		check_trees(&t, (enum measure_kind)kind);
		check_columns(&t, (enum measure_kind)kind);
	}
	check_answer(&t, &origin);
	if (t.type_count)
		write_all(&t, traces_default_kind(&t), origin.program);
	traces_fini(&t);
	check_merge(p, choices & 2);
}

static void suppress(const uint8_t *data, size_t len)
{
	struct suppressions suppressions = {0};
	size_t line;

	if (!suppressions_add(&suppressions, (const char *)data, len, &line))
		for (size_t i = 0; i < suppressions.count; i++)
			suppressions_pattern(suppressions.patterns[i], "some::function<int>");
	suppressions_fini(&suppressions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct profile *p;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (!len)
		return 0;
	suppress(data, len);
	if (decode_profile(data + 1, len - 1, MAX_BYTES, &p) != DECODE_OK)
		return 0;
	look(p, data[0]);
	profile_free(p);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often growth is found in real programs that do not grow, and how soon a leak beside them: all that a
 * program allocated and freed (growth_log.c), of which each recording draws its own samples, as heaptap does,
 * and has them judged by pprof/analysis/growth at each snapshot, as somebody would who looks again and again.
 * `make growth-traces` records and runs it; docs/design/growth.md has its results.
 *
 * Usage: growth_replay TRACE [RECORDINGS [PERIOD_KIB [STRETCH]]]
 *
 * STRETCH: time is that many times longer than it was. So an hour can be asked about without recording it;
 * the program then does the same more slowly.
 */
#include "bench/chance.h"
#include "bench/growth_trace.h"
#include "pprof/analysis/growth.h"
#include "pprof/analysis/shared_samples.h"
#include "pprof/model/estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB       1048576.0
/* Until then a program warms up. */
#define WARM_PART 0.2

enum {
	SNAPSHOTS = 19,
	TRUTHS = 12,
	AT_5 = 8, /* points of 5, 10 and 15 minutes */
	AT_10 = 13,
	AT_15 = 18,
	INUSE = 0,
	INUSE_OBJECTS,
	ALLOC,
	OBJECTS,
	TYPES,
	SLOTS = TYPES + 2,
};

static const double leak_bytes = 4096;
static double times_s[SNAPSHOTS] = {5, 10, 20, 40};

/* ---- a recording of it */

struct leak {
	double mib_per_min;
	uint32_t stack;
};

struct recording {
	struct traces traces;
	uint32_t *row_of; /* of each stack, number + 1 */
	double *values;   /* [(row * SNAPSHOTS + column) * TYPES + type] */
	uint32_t *stack_of;
	int64_t times_ns[SNAPSHOTS];
};

static void recording_init(struct recording *recording, const struct growth_trace *trace)
{
	struct traces *t = &recording->traces;
	const size_t rows = trace->stack_count;

	memset(recording, 0, sizeof(*recording));
	recording->row_of = growth_trace_need(calloc(rows, sizeof(*recording->row_of)));
	recording->stack_of = growth_trace_need(calloc(rows, sizeof(*recording->stack_of)));
	recording->values = growth_trace_need(calloc(rows * SNAPSHOTS * TYPES, sizeof(*recording->values)));
	t->rows = growth_trace_need(calloc(rows, sizeof(*t->rows)));
	t->values = growth_trace_need(calloc(rows * SNAPSHOTS * SLOTS, sizeof(*t->values)));
	t->estimates = growth_trace_need(calloc(rows * SNAPSHOTS * SIDE_COUNT, sizeof(*t->estimates)));
	t->selected_estimates =
	    growth_trace_need(calloc(SNAPSHOTS * SIDE_COUNT, sizeof(*t->selected_estimates)));
	t->stacks = trace->frames;
	t->frames.count = trace->frame_count;
	t->frames.rows =
	    growth_trace_need(calloc(trace->frame_count, sizeof(*t->frames.rows))); /* all FRAME_OWN */
	for (uint32_t i = 0; i < trace->frame_count; i++)
		t->frames.rows[i].name = "";
	t->type_count = TYPES;
	t->slot_count = SLOTS;
	t->column_count = SNAPSHOTS;
	for (int kind = 0; kind < MEASURE_COUNT; kind++)
		t->kinds[kind] = -1;
	t->kinds[MEASURE_INUSE] = INUSE;
	t->kinds[MEASURE_INUSE_OBJECTS] = INUSE_OBJECTS;
	t->kinds[MEASURE_ALLOC] = ALLOC;
	t->kinds[MEASURE_OBJECTS] = OBJECTS;
	for (int i = 0; i < SNAPSHOTS; i++)
		recording->times_ns[i] = (int64_t)(times_s[i] * 1e9);
}

static void clear(struct recording *recording)
{
	struct traces *t = &recording->traces;

	memset(recording->values, 0, (size_t)t->row_count * SNAPSHOTS * TYPES * sizeof(double));
	for (uint32_t row = 0; row < t->row_count; row++)
		recording->row_of[recording->stack_of[row]] = 0;
	t->row_count = 0;
}

/* A sampled block: born and died since the recording began. */
static void add(struct recording *recording, const struct growth_trace *trace, uint32_t stack, double bytes,
    double period, double born_s, double died_s)
{
	struct traces *t = &recording->traces;
	const double objects = -1 / expm1(-bytes / period);
	double *values;

	if (!recording->row_of[stack]) {
		t->rows[t->row_count] = (struct traces_row){.stack = (size_t)stack * GROWTH_LOG_DEPTH,
		    .depth = trace->stacks[stack].depth,
		    .head = trace->heads[stack]};
		recording->stack_of[t->row_count] = stack;
		recording->row_of[stack] = ++t->row_count;
	}
	values = recording->values + (size_t)(recording->row_of[stack] - 1) * SNAPSHOTS * TYPES;
	for (int i = SNAPSHOTS - 1; i >= 0 && times_s[i] >= born_s; i--) {
		double *at = values + i * TYPES;

		at[ALLOC] += objects * bytes;
		at[OBJECTS] += objects;
		if (died_s <= times_s[i])
			continue;
		at[INUSE] += objects * bytes;
		at[INUSE_OBJECTS] += objects;
	}
}

static size_t block_over(const struct growth_trace *trace, double at_bytes)
{
	size_t low = 0, high = trace->block_count;

	while (high - low > 1) {
		const size_t middle = (low + high) / 2;

		if (trace->blocks[middle].before_bytes <= at_bytes)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static size_t block_since(const struct growth_trace *trace, double time_s)
{
	size_t low = 0, high = trace->block_count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (trace->blocks[middle].born_s < time_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void finish(struct recording *recording, double period)
{
	struct traces *t = &recording->traces;

	memset(t->selected_estimates, 0, SNAPSHOTS * SIDE_COUNT * sizeof(*t->selected_estimates));
	for (size_t cell = 0; cell < (size_t)t->row_count * SNAPSHOTS; cell++) {
		const double *values = recording->values + cell * TYPES;
		struct estimate *sides = t->estimates + cell * SIDE_COUNT;
		struct estimate *sums = t->selected_estimates + cell % SNAPSHOTS * SIDE_COUNT;

		for (int type = 0; type < TYPES; type++)
			t->values[cell * SLOTS + type] = llround(values[type]);
		sides[SIDE_INUSE] = estimate_of(values[INUSE], values[INUSE_OBJECTS], 0, period);
		sides[SIDE_ALLOC] = estimate_of(values[ALLOC], values[OBJECTS], 0, period);
		estimate_add(&sums[SIDE_INUSE], sides[SIDE_INUSE]);
		estimate_add(&sums[SIDE_ALLOC], sides[SIDE_ALLOC]);
	}
}

/* From begin_s on; is_blind: what was allocated before is not known, as after an attach. */
static void record(struct recording *recording, const struct growth_trace *trace, double begin_s,
    bool is_blind, double period, const struct leak *leak)
{
	const double end_s = begin_s + times_s[SNAPSHOTS - 1];
	const size_t first = is_blind ? block_since(trace, begin_s) : 0;
	size_t last = SIZE_MAX;

	clear(recording);
	if (first == trace->block_count)
		return;
	for (double at = trace->blocks[first].before_bytes + chance_exponential(period); at < trace->bytes;
	     at += chance_exponential(period)) {
		const size_t i = block_over(trace, at);
		const struct growth_block *block = &trace->blocks[i];

		if (block->born_s >= end_s)
			break;
		if (i != last)
			add(recording, trace, block->stack, block->bytes, period, block->born_s - begin_s,
			    block->died_s - begin_s);
		last = i;
	}
	if (leak) {
		/* Of blocks of 4 KiB nearly each sample is of another one. */
		const double gap_s = period / (leak->mib_per_min * MIB / 60);

		for (double at = chance_exponential(gap_s); at < times_s[SNAPSHOTS - 1];
		     at += chance_exponential(gap_s))
			add(recording, trace, leak->stack, leak_bytes, period, at, INFINITY);
	}
	finish(recording, period);
}

/* ---- what is asked */

static bool is_in(const struct growth_trace *trace, uint32_t stack, uint32_t frame)
{
	for (uint32_t i = trace->heads[stack]; i < trace->stacks[stack].depth; i++)
		if (trace->frames[stack * GROWTH_LOG_DEPTH + i] == frame)
			return true;
	return false;
}

/* Does anything grow (stack UINT32_MAX), or what this stack is part of? */
static bool finds(const struct recording *recording, const struct growth_trace *trace, int points,
    uint32_t stack, double *counts)
{
	struct growth growth;
	bool found = false;

	if (growth_make(&growth, &recording->traces, 0, recording->times_ns, (size_t)points))
		growth_trace_need(NULL);
	for (size_t i = 0; i < growth.growing_count; i++) {
		found |= stack == UINT32_MAX || is_in(trace, stack, growth.rows[i].frame);
		if (counts)
			counts[growth.rows[i].frame]++;
	}
	growth_fini(&growth);
	return found;
}

/* What was in use below a function: a doubtful finding may be none. */
static void show_truth(const struct growth_trace *trace, uint32_t frame)
{
	double held[TRUTHS] = {0};

	for (size_t i = 0; i < trace->block_count; i++) {
		const struct growth_block *block = &trace->blocks[i];

		for (int at = 0; at < TRUTHS && is_in(trace, block->stack, frame); at++) {
			const double now_s = trace->end_s * (WARM_PART + (1 - WARM_PART) * at / (TRUTHS - 1));

			if (block->born_s <= now_s && block->died_s > now_s)
				held[at] += block->bytes / MIB;
		}
	}
	for (int at = 0; at < TRUTHS; at++)
		printf(" %.1f", held[at]);
	printf(" MiB\n");
}

static double draw_begin(const struct growth_trace *trace)
{
	const double latest_s = trace->end_s - times_s[SNAPSHOTS - 1], earliest_s = WARM_PART * trace->end_s;

	return earliest_s + chance_uniform() * fmax(latest_s - earliest_s, 0);
}

static void steady(struct recording *recording, const struct growth_trace *trace, int recordings,
    bool is_blind, double period)
{
	double *counts = growth_trace_need(calloc(trace->frame_count, sizeof(*counts)));
	int any = 0, later = 0, at_5 = 0, at_10 = 0, at_15 = 0;

	for (int r = 0; r < recordings; r++) {
		bool seen = false, seen_later = false;

		record(recording, trace, draw_begin(trace), is_blind, period, NULL);
		for (int n = TREND_POINTS_LEAST; n <= SNAPSHOTS; n++) {
			const bool found = finds(recording, trace, n, UINT32_MAX, counts);

			seen |= found;
			seen_later |= found && n > AT_5;
			at_5 += found && n == AT_5 + 1;
			at_10 += found && n == AT_10 + 1;
			at_15 += found && n == AT_15 + 1;
		}
		any += seen;
		later += seen_later;
	}
	printf(
	    "  %s: something grows at any snapshot %.1f %%, at any from 5 min on %.1f %%, at 5 min %.1f %%, "
	    "at 10 min %.1f %%, at 15 min %.1f %%\n",
	    is_blind ? "attached                 " : "recorded since long before", 100.0 * any / recordings,
	    100.0 * later / recordings, 100.0 * at_5 / recordings, 100.0 * at_10 / recordings,
	    100.0 * at_15 / recordings);
	for (uint32_t f = 0; f < trace->frame_count; f++)
		if (counts[f] > 0) {
			printf("    function %#llx: %.3f snapshots a recording; in truth it has",
			    (unsigned long long)trace->functions[f], counts[f] / recordings);
			show_truth(trace, f);
		}
	free(counts);
}

static void leaking(struct recording *recording, const struct growth_trace *trace, int recordings,
    double period, const struct leak *leak)
{
	int at[SNAPSHOTS] = {0};

	for (int r = 0; r < recordings; r++) {
		bool seen = false;

		record(recording, trace, draw_begin(trace), false, period, leak);
		for (int n = TREND_POINTS_LEAST; n <= SNAPSHOTS; n++) {
			seen = seen || finds(recording, trace, n, leak->stack, NULL);
			at[n - 1] += seen;
		}
	}
	printf("  %4g MiB a minute %s: found by 1 min %5.1f %%, 5 min %5.1f %%, 10 min %5.1f %%, 15 min "
	       "%5.1f %%\n",
	    leak->mib_per_min,
	    leak->stack == trace->leak_stack ? "in a row of its own       " : "in the row with most in use",
	    100.0 * at[4] / recordings, 100.0 * at[AT_5] / recordings, 100.0 * at[AT_10] / recordings,
	    100.0 * at[AT_15] / recordings);
}

int main(int argc, char **argv)
{
	const int recordings = argc > 2 ? atoi(argv[2]) : 1000;
	const double period = (argc > 3 ? atof(argv[3]) : 512) * 1024, stretch = argc > 4 ? atof(argv[4]) : 1;
	/* What happens in half of the recordings takes fewer to count than what hardly ever does. */
	const int leaks = (recordings + 3) / 4;
	struct growth_trace trace = {0};
	struct recording recording;

	if (argc < 2)
		return 2;
	for (int i = 4; i < SNAPSHOTS; i++)
		times_s[i] = 60.0 * (i - 3);
	printf("%s, a sample every %g KiB, time stretched %g times: ", argv[1], period / 1024, stretch);
	growth_trace_read(&trace, argv[1], stretch);
	recording_init(&recording, &trace);
	steady(&recording, &trace, recordings, false, period);
	steady(&recording, &trace, recordings, true, period);
	for (int i = 0; i < 3; i++) {
		const double rates[] = {0.1, 1, 10};

		leaking(&recording, &trace, leaks, period, &(struct leak){rates[i], trace.leak_stack});
		leaking(&recording, &trace, leaks, period, &(struct leak){rates[i], trace.churn_stack});
	}
	return 0;
}

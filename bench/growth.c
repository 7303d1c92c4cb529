/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often growth is found where there is none, and how soon where there is some: programs whose blocks
 * are drawn, each sampled at the default period, judged by pprof/analysis/trend at every snapshot as a
 * person who looks again and again would. `make growth` runs it; docs/design/growth.md has its results.
 *
 * Usage: growth [RECORDINGS [SEED]]
 */
#include "bench/chance.h"
#include "pprof/analysis/trend.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_BYTES (512.0 * 1024)
#define MIB          (1024.0 * 1024)
#define FOR_EVER     1e9

/* ---- programs: each row has blocks by some law */

enum law {
	CHURN, /* size_mib in use, each block lives for time_s on average */
	SAW,   /* grows to size_mib in time_s, then all is freed */
	FIXED, /* size_mib, allocated within time_s of the start */
	CACHE, /* the last size_mib of what is allocated, filled in time_s */
	BATCH, /* jobs of size_mib on average, time_s apart on average, half as long */
	LEAK,  /* size_mib a minute, from time_s on */
	STEP,  /* size_mib at time_s */
	LAWS,
};

struct part {
	enum law law;
	double size_mib, time_s;
};

enum { PARTS_MOST = 2, ROWS_MOST = 96, POINTS_MOST = 64 };

struct row {
	struct part parts[PARTS_MOST];
	int part_count;
};

struct program {
	const char *name;
	struct row rows[ROWS_MOST];
	int row_count;
};

/* Small blocks: their samples are a Poisson process of one in PERIOD_BYTES, each of which stands for that
 * many. */
struct samples {
	double *born_s, *died_s;
	size_t count, capacity;
};

static void sample(struct samples *samples, double born_s, double died_s)
{
	if (samples->count == samples->capacity) {
		samples->capacity = samples->capacity ? 2 * samples->capacity : 1024;
		samples->born_s = realloc(samples->born_s, samples->capacity * sizeof(double));
		samples->died_s = realloc(samples->died_s, samples->capacity * sizeof(double));
		if (!samples->born_s || !samples->died_s)
			abort();
	}
	samples->born_s[samples->count] = born_s;
	samples->died_s[samples->count++] = died_s;
}

/* Samples of mib_per_s from one time to another. */
static double next_birth(double now_s, double mib_per_s)
{
	return now_s + chance_exponential(PERIOD_BYTES / (mib_per_s * MIB));
}

static void draw_part(struct samples *samples, const struct part *part, double end_s)
{
	const double per_s = part->size_mib / part->time_s;
	double phase_s;

	switch (part->law) {
	case CHURN:
		for (double t = next_birth(0, per_s); t < end_s; t = next_birth(t, per_s))
			sample(samples, t, t + chance_exponential(part->time_s));
		break;
	case SAW:
		phase_s = chance_uniform() * part->time_s;
		for (double t = next_birth(0, per_s); t < end_s; t = next_birth(t, per_s))
			sample(
			    samples, t, (floor((t + phase_s) / part->time_s) + 1) * part->time_s - phase_s);
		break;
	case FIXED:
		for (double t = next_birth(0, per_s); t < part->time_s; t = next_birth(t, per_s))
			sample(samples, t, FOR_EVER);
		break;
	case CACHE:
		for (double t = next_birth(0, per_s); t < end_s; t = next_birth(t, per_s))
			sample(samples, t, t + part->time_s);
		break;
	case BATCH:
		for (double t = chance_exponential(part->time_s); t < end_s;
		     t += chance_exponential(part->time_s)) {
			const double ends_s = t + chance_exponential(part->time_s / 2),
			             mib = chance_exponential(part->size_mib);

			for (double at = next_birth(0, mib); at < 1; at = next_birth(at, mib))
				sample(samples, t, ends_s);
		}
		break;
	case LEAK:
		for (double t = next_birth(part->time_s, part->size_mib / 60); t < end_s;
		     t = next_birth(t, part->size_mib / 60))
			sample(samples, t, FOR_EVER);
		break;
	case STEP:
		for (double at = next_birth(0, part->size_mib); at < 1; at = next_birth(at, part->size_mib))
			sample(samples, part->time_s + at, FOR_EVER);
		break;
	case LAWS:
		break;
	}
}

/* ---- a recording: the points of each row */

struct recording {
	struct trend_point points[ROWS_MOST][POINTS_MOST];
	int row_count, point_count;
};

static void record(struct recording *recording, const struct program *program, const double *times_s,
    int count, double before_s)
{
	static struct samples samples;

	recording->row_count = program->row_count;
	recording->point_count = count;
	for (int r = 0; r < program->row_count; r++) {
		samples.count = 0;
		for (int i = 0; i < program->rows[r].part_count; i++)
			draw_part(&samples, &program->rows[r].parts[i], before_s + times_s[count - 1]);
		for (int p = 0; p < count; p++) {
			const double now_s = before_s + times_s[p];
			double inuse = 0, allocated = 0;

			for (size_t i = 0; i < samples.count; i++) {
				allocated += samples.born_s[i] <= now_s;
				inuse += samples.born_s[i] <= now_s && samples.died_s[i] > now_s;
			}
			recording->points[r][p] = (struct trend_point){now_s, inuse * PERIOD_BYTES,
			    inuse * PERIOD_BYTES * PERIOD_BYTES, inuse, allocated * PERIOD_BYTES,
			    allocated * PERIOD_BYTES * PERIOD_BYTES, allocated};
		}
	}
}

static double bar_of(const struct recording *recording, int count)
{
	double rows = 1;

	for (;; rows++) {
		int askable = 0;

		for (int r = 0; r < recording->row_count; r++)
			askable += trend_is_askable(
			    recording->points[r], (size_t)count, trend_bar(rows, (size_t)count));
		if (askable <= rows)
			return trend_bar(rows, (size_t)count);
	}
}

/* ---- what is asked */

static const struct row steady_rows[] = {
    {{{CHURN, 100, 2}}, 1},
    {{{CHURN, 50, 6}}, 1},
    {{{CHURN, 25, 18}}, 1},
    {{{CHURN, 12, 54}}, 1},
    {{{CHURN, 6, 162}}, 1},
    {{{CHURN, 3, 2}}, 1},
    {{{CHURN, 2, 60}}, 1},
    {{{CHURN, 1, 10}}, 1},
    {{{SAW, 30, 7}}, 1},
    {{{SAW, 20, 33}}, 1},
    {{{SAW, 40, 150}}, 1},
    {{{SAW, 5, 1.7}}, 1},
    {{{FIXED, 30, 3}}, 1},
    {{{FIXED, 10, 60}}, 1},
    {{{FIXED, 1, 2}}, 1},
    {{{FIXED, 0.5, 2}}, 1},
    {{{CACHE, 50, 30}}, 1},
    {{{CACHE, 20, 120}}, 1},
    {{{BATCH, 5, 20}}, 1},
    {{{BATCH, 20, 60}}, 1},
    {{{BATCH, 2, 200}}, 1},
};
enum { STEADY_ROWS = sizeof(steady_rows) / sizeof(steady_rows[0]) };
static const char *const law_names[LAWS] = {"churn", "saw", "fixed", "cache", "batch", "leak", "step"};

enum { SNAPSHOTS = 19 };
static double times_s[SNAPSHOTS] = {5, 10, 20, 40};

static int looks_of_growth[STEADY_ROWS];

/* One steady program with all of these rows, asked at each snapshot. */
static void steady(int recordings, double before_s, double from_s)
{
	struct program program = {"steady", {{{{0}}, 0}}, STEADY_ROWS};
	static struct recording recording;
	int alarmed = 0, at_10 = 0, at_15 = 0;

	memcpy(program.rows, steady_rows, sizeof(steady_rows));
	memset(looks_of_growth, 0, sizeof(looks_of_growth));
	for (int i = 0; i < recordings; i++) {
		bool any = false;

		record(&recording, &program, times_s, SNAPSHOTS, before_s);
		for (int n = TREND_POINTS_LEAST; n <= SNAPSHOTS; n++) {
			const double bar = bar_of(&recording, n), now_s = times_s[n - 1];
			bool found = false;

			for (int r = 0; r < STEADY_ROWS && now_s >= from_s; r++) {
				if (trend_find(recording.points[r], (size_t)n, bar).kind != TREND_GROWS)
					continue;
				found = true;
				looks_of_growth[r]++;
			}
			any |= found;
			at_10 += found && now_s == 600;
			at_15 += found && now_s == 900;
		}
		alarmed += any;
	}
	printf("steady for %3.0f s before, asked from %3.0f s on: %.2f %% say at some snapshot that "
	       "something grows, "
	       "%.2f %% at 10 min, %.2f %% at 15 min\n",
	    before_s, from_s, 100.0 * alarmed / recordings, 100.0 * at_10 / recordings,
	    100.0 * at_15 / recordings);
	for (int r = 0; r < STEADY_ROWS; r++)
		if (looks_of_growth[r])
			printf("    %s of %g MiB, %g s: %.3f snapshots a recording\n",
			    law_names[steady_rows[r].parts[0].law], steady_rows[r].parts[0].size_mib,
			    steady_rows[r].parts[0].time_s, (double)looks_of_growth[r] / recordings);
}

/* A rising row beside others. */
static void found(const char *what, int recordings, const struct row *row, int others, double begins_s,
    enum trend_kind kind)
{
	struct program program = {what, {{{{0}}, 0}}, 0};
	static struct recording recording;
	int at[SNAPSHOTS] = {0}, since_right = 0, rate_right = 0, last = 0;
	const double before_s = 300;

	for (int i = 0; i < others; i++)
		program.rows[program.row_count++] = steady_rows[i];
	program.rows[program.row_count++] = *row;
	for (int i = 0; i < recordings; i++) {
		bool seen = false;

		record(&recording, &program, times_s, SNAPSHOTS, before_s);
		for (int n = TREND_POINTS_LEAST; n <= SNAPSHOTS; n++) {
			const struct trend trend =
			    trend_find(recording.points[others], (size_t)n, bar_of(&recording, n));

			seen |= trend.kind == kind;
			at[n - 1] += seen;
			if (n == SNAPSHOTS && trend.kind == kind) {
				const double rate = row->parts[0].size_mib * MIB / 60;

				last++;
				since_right += fabs(times_s[trend.since] - begins_s) <= 90;
				rate_right +=
				    fabs(trend.bytes_per_s - rate) <= 2 * sqrt(trend.bytes_per_s_variance);
			}
		}
	}
	printf("%-44s found by 1 min %3.0f %%, 5 min %3.0f %%, 10 min %3.0f %%, 15 min %3.0f %%, said at 15 "
	       "min %3.0f %%; "
	       "since right %3.0f %%, rate within 2 errors %3.0f %%\n",
	    what, 100.0 * at[4] / recordings, 100.0 * at[8] / recordings, 100.0 * at[13] / recordings,
	    100.0 * at[18] / recordings, 100.0 * last / recordings, last ? 100.0 * since_right / last : 0.0,
	    last ? 100.0 * rate_right / last : 0.0);
}

int main(int argc, char **argv)
{
	const int recordings = argc > 1 ? atoi(argv[1]) : 1000;

	chance_seed(argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
	for (int i = 4; i < SNAPSHOTS; i++)
		times_s[i] = 60.0 * (i - 3);
	steady(recordings, 300, 0);
	steady(recordings, 0, 300);
	const double begins_s = 300;
	for (int others = 1; others <= STEADY_ROWS; others += STEADY_ROWS - 1) {
		printf("beside %d steady rows:\n", others);
		for (int i = 0; i < 3; i++) {
			const double mib[] = {0.1, 1, 10};
			const struct row own = {{{LEAK, mib[i], begins_s}}, 1};
			const struct row churn = {{{LEAK, mib[i], begins_s}, {CHURN, 100, 20}}, 2};
			char what[64];

			snprintf(what, sizeof(what), "%g MiB a minute", mib[i]);
			found(what, recordings, &own, others, 0, TREND_GROWS);
			snprintf(what, sizeof(what), "%g MiB a minute, 100 MiB of churn", mib[i]);
			found(what, recordings, &churn, others, 0, TREND_GROWS);
		}
		found("10 MiB a minute from 400 s on", recordings,
		    &(struct row){{{LEAK, 10, begins_s + 400}}, 1}, others, 400, TREND_GROWS);
		found("step of 20 MiB at 400 s", recordings, &(struct row){{{STEP, 20, begins_s + 400}}, 1},
		    others, 360, TREND_ROSE);
		found("step of 20 MiB at 400 s upon 100 MiB", recordings,
		    &(struct row){{{STEP, 20, begins_s + 400}, {FIXED, 100, 3}}, 2}, others, 360, TREND_ROSE);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/trend.h"

#include <math.h>

/* A rise keeps at least this part of what was allocated meanwhile. */
#define KEPT_PART        0.5
/* A sum that has never fallen: a worker that leaks a part of what it allocates. */
#define KEPT_PART_STEADY 0.2
/* One step alone is at most this part of a rise, and steps below SMALL_PART are not counted. */
#define STEP_PART        0.6
#define SMALL_PART       0.05
/* Of a step that takes longer than others, because snapshots do not come evenly, as much as of the time. */
#define LONG_STEP_PART   0.75
/* After a rise that has ended the mean is above its end by at most this part of it. */
#define FLAT_PART        0.5
/* Of a rise that goes on, the last third of the time has at least this part. */
#define RECENT_PART      0.15

/* The kinds of evidence share the chance of a false alarm; kept has most, because it needs fewest points. */
#define KEPT_SHARE  0.75
#define OTHER_SHARE 0.125 /* order, and line */
/* The sum of 1/k^2 from the second k on. */
#define OCTAVES     (M_PI * M_PI / 6 - 1)
/* What lies on a rising line is in rising order too, by this chance. */
#define LINE_ORDER  0.01

enum {
	STEPS_LEAST = 3,
	ORDER_POINTS_LEAST = 5,
	FLAT_POINTS_LEAST = 3, /* after a rise that has ended */
	UNSEEN_SAMPLES = 3,
	EXACT_MOST = 4000,     /* samples for which the binomial distribution is added up */
	EXACT_ORDER_MOST = 40, /* points for which Kendall's distribution is */
};

/* ---- distributions */

static double normal_tail(double z)
{
	return 0.5 * erfc(z / sqrt(2));
}

/* The chance that of came + went fair coins `came` or more show heads. */
static double coin_tail(double came, double went)
{
	const double all = round(came + went), heads = round(came);
	double sum = 0;

	if (heads * 2 <= all)
		return 1;
	if (all > EXACT_MOST)
		return normal_tail((2 * heads - 1 - all) / sqrt(all));
	for (double k = heads; k <= all; k++) {
		const double term = exp(lgamma(all + 1) - lgamma(k + 1) - lgamma(all - k + 1) - all * M_LN2);

		sum += term;
		if (term < sum * 1e-9)
			break;
	}
	return sum;
}

/* The chance that of `count` points in random order so few pairs, or fewer, are in falling order. */
static double order_tail(size_t count, double falling)
{
	const double n = (double)count, pairs = n * (n - 1) / 2;
	double chances[EXACT_ORDER_MOST * (EXACT_ORDER_MOST - 1) / 2 + 1] = {1}, sum = 0;
	size_t most = 0;

	if (count > EXACT_ORDER_MOST)
		return normal_tail((pairs - 2 * falling - 1) / sqrt(n * (n - 1) * (2 * n + 5) / 18));
	/* The k-th point falls behind 0 to k of those before it, with equal chances: each chance is a mean of
	 * k + 1 of those before. In place, from the end: these are still the old ones. */
	for (size_t k = 1; k < count; k++) {
		most += k;
		for (size_t pair = most + 1; pair-- > 0;) {
			double mean = 0;

			for (size_t less = 0; less <= k && less <= pair; less++)
				mean += chances[pair - less];
			chances[pair] = mean / (double)(k + 1);
		}
	}
	for (size_t pair = 0; (double)pair <= falling && pair <= most; pair++)
		sum += chances[pair];
	return sum;
}

const char *trend_kind_name(enum trend_kind kind)
{
	return kind == TREND_GROWS ? "grows" : kind == TREND_ROSE ? "rose" : "steady";
}

/* The chance that a line through points without any slope rises by as many of its errors: Student's t with
 * `freedom` degrees (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4). */
static double student_tail(double t, size_t freedom)
{
	const double angle = atan(t / sqrt((double)freedom)), cosine = cos(angle);
	const bool is_odd = freedom % 2;
	double term = is_odd ? cosine : 1, sum = freedom > 1 ? term : 0;

	for (size_t k = is_odd ? 3 : 2; k < freedom; k += 2) {
		term *= cosine * cosine * (double)(k - 1) / (double)k;
		sum += term;
	}
	sum *= sin(angle);
	return (1 - (is_odd ? (angle + sum) * M_2_PI : sum)) / 2;
}

/* ---- the bar */

double trend_bar(double rows, size_t points)
{
	/* Asking again with every point needs a bar that falls as the square of the logarithm of their
	 * number (Howard et al., Annals of Statistics 49, 2021, section 3.1): the k-th octave of points
	 * has a k^2-th part of what OCTAVES leaves; from the second octave on that is the whole. */
	const double octaves = log2(fmax((double)points, TREND_POINTS_LEAST));

	return KEPT_SHARE * TREND_FALSE_ALARMS / (OCTAVES * fmax(rows, 1) * octaves * octaves);
}

bool trend_is_askable(const struct trend_point *points, size_t count, double bar)
{
	const double came = points[count - 1].allocated_samples - points[0].allocated_samples;

	return count >= TREND_POINTS_LEAST && (isnan(came) || came >= -log2(bar));
}

/* ---- the rise between two points */

struct rise {
	size_t since, until;
	double base_bytes, bytes; /* from the highest point up to `since` to the lowest from `until` on */
};

static double variance_between(const struct trend_point *from, const struct trend_point *to)
{
	const double apart = from->inuse_variance + to->inuse_variance;
	const double came = to->allocated_bytes - from->allocated_bytes;
	const double went = came - (to->inuse_bytes - from->inuse_bytes);

	/* As in column_diff.h: only what came or went between differs. */
	if (!(came > 0) || went < 0)
		return apart;
	return fmin(apart, to->allocated_variance * (came + went) / to->allocated_bytes);
}

/* Has no point been below an earlier one, by more than a small part of the rise? */
static bool never_fell(const struct trend_point *points, size_t count)
{
	double most = points[0].inuse_bytes;
	const double small = SMALL_PART * (points[count - 1].inuse_bytes - points[0].inuse_bytes);

	for (size_t i = 1; i < count; i++) {
		if (points[i].inuse_bytes < most - small)
			return false;
		most = fmax(most, points[i].inuse_bytes);
	}
	return true;
}

/* Is more kept of what came than chance explains, and `part` of it at least? */
static bool is_kept(const struct trend_point *points, const struct rise *rise, double part, double bar)
{
	const struct trend_point *from = &points[rise->since], *to = &points[rise->until];
	const double came_bytes = to->allocated_bytes - from->allocated_bytes;
	const double came = to->allocated_samples - from->allocated_samples;
	const double kept = came_bytes > 0 ? fmin(rise->bytes / came_bytes, 1) : 0;

	return kept >= part && coin_tail(came, came * (1 - kept)) <= bar;
}

static bool has_steps(const struct trend_point *points, const struct rise *rise)
{
	const double bottom_bytes = points[rise->until].inuse_bytes - (1 - SMALL_PART) * rise->bytes;
	double begin_s = points[rise->since].time_s;
	int steps = 0;

	for (size_t i = rise->since; i < rise->until; i++)
		if (points[i].inuse_bytes <= bottom_bytes)
			begin_s = points[i].time_s;
	for (size_t i = rise->since + 1; i <= rise->until; i++) {
		const double step = points[i].inuse_bytes - points[i - 1].inuse_bytes;
		const double step_s = points[i].time_s - points[i - 1].time_s;
		const double time_part = step_s / (points[rise->until].time_s - begin_s);

		if (step > fmax(STEP_PART, fmin(LONG_STEP_PART, 1.2 * time_part)) * rise->bytes)
			return false;
		steps += step > SMALL_PART * rise->bytes;
	}
	return steps >= STEPS_LEAST;
}

/* The mean of the points within a part of the time; where there is none, the last one before. */
static double mean_within(const struct trend_point *points, size_t count, double from_s, double to_s)
{
	double sum = 0, before = points[0].inuse_bytes;
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		if (points[i].time_s <= from_s)
			before = points[i].inuse_bytes;
		else if (points[i].time_s <= to_s) {
			sum += points[i].inuse_bytes;
			found++;
		}
	}
	return found ? sum / (double)found : before;
}

/* Does it still rise in the last third of the time since? */
static bool goes_on(const struct trend_point *points, size_t count, size_t since, double bytes)
{
	const double begin_s = points[since].time_s, end_s = points[count - 1].time_s;
	const double third_s = (end_s - begin_s) / 3;
	const double middle = mean_within(points, count, begin_s + third_s, end_s - third_s);
	const double recent = mean_within(points, count, end_s - third_s, end_s);

	return recent - middle > RECENT_PART * bytes;
}

/* The largest rise that ends at `until`, among the rises that are kept. */
static bool find_kept(
    const struct trend_point *points, size_t until, double end_bytes, double bar, struct rise *found)
{
	const double part = never_fell(points, until + 1) ? KEPT_PART_STEADY : KEPT_PART;
	struct rise rise = {.until = until};

	for (rise.since = 0; rise.since < until; rise.since++) {
		if (!rise.since || points[rise.since].inuse_bytes > rise.base_bytes)
			rise.base_bytes = points[rise.since].inuse_bytes;
		rise.bytes = end_bytes - rise.base_bytes;
		if (rise.bytes <= 0)
			break;
		if (is_kept(points, &rise, part, bar)) {
			*found = rise;
			return true;
		}
	}
	return false;
}

/* ---- the order of points */

/* What is in use for a quarter of the time at least. Not more, because growth itself makes blocks look
 * longer-lived. */
static double low_bytes(const struct trend_point *points, size_t count)
{
	const double quarter_s = (points[count - 1].time_s - points[0].time_s) / 4;
	double low = INFINITY;

	for (size_t i = 1; i < count; i++) {
		double below_s = 0;

		for (size_t n = 1; n < count; n++)
			if (points[n].inuse_bytes <= points[i].inuse_bytes)
				below_s += points[n].time_s - points[n - 1].time_s;
		if (below_s >= quarter_s)
			low = fmin(low, points[i].inuse_bytes);
	}
	return low;
}

/* The mean life of a block. Where no sample is in use, up to three may be (by 95 %), and live as long. */
static double life_s(const struct trend_point *points, size_t count)
{
	const struct trend_point *first = &points[0], *last = &points[count - 1];
	const double sample_bytes =
	    last->allocated_samples > 0 ? last->allocated_bytes / last->allocated_samples : 0;

	return (low_bytes(points, count) + UNSEEN_SAMPLES * sample_bytes) * (last->time_s - first->time_s) /
	    (last->allocated_bytes - first->allocated_bytes);
}

/* The least squares line through some points: by how many of its errors does it rise? */
static double line_rise(const struct trend_point *const *points, size_t count)
{
	const double n = (double)count;
	double x = 0, y = 0, xx = 0, xy = 0, yy = 0, sampling = 0;

	for (size_t i = 0; i < count; i++) {
		const double time_s = points[i]->time_s - points[count - 1]->time_s;

		x += time_s / n;
		y += points[i]->inuse_bytes / n;
		sampling += points[i]->inuse_variance / n;
	}
	for (size_t i = 0; i < count; i++) {
		const double dx = points[i]->time_s - points[count - 1]->time_s - x;
		const double dy = points[i]->inuse_bytes - y;

		xx += dx * dx;
		xy += dx * dy;
		yy += dy * dy;
	}
	/* Points scatter by their sampling at least, even if few of them happen to lie on a line. */
	return xy / sqrt(xx * fmax((yy - xy * xy / xx) / (n - 2), sampling));
}

static bool is_in_order(const struct trend_point *points, size_t count, double bar)
{
	const double apart_s = isnan(points[0].allocated_bytes) ? 0 : 2 * life_s(points, count);
	const struct trend_point *chosen[TREND_POINTS_MOST]; /* the latest first */
	double falling = 0, next_s = points[count - 1].time_s, chance;
	struct rise rise = {.until = count - 1};
	size_t used = 0;

	for (size_t i = count; i-- > 0;) {
		if (!(points[i].time_s <= next_s))
			continue;
		chosen[used++] = &points[i];
		next_s = points[i].time_s - apart_s;
	}
	if (used < ORDER_POINTS_LEAST || !(apart_s < INFINITY))
		return false;
	for (size_t late = 0; late < used; late++)
		for (size_t early = late + 1; early < used; early++) {
			const double step = chosen[late]->inuse_bytes - chosen[early]->inuse_bytes;

			falling += step < 0 ? 1 : step > 0 ? 0 : 0.5;
		}
	chance = order_tail(used, falling);
	bar *= OTHER_SHARE / KEPT_SHARE;
	rise.since = (size_t)(chosen[used - 1] - points);
	rise.bytes = chosen[0]->inuse_bytes - chosen[used - 1]->inuse_bytes;
	/* One step is near a line too, as far as the sum of squares knows. */
	return chance <= bar ||
	    (chance <= LINE_ORDER && has_steps(points, &rise) &&
	        student_tail(line_rise(chosen, used), used - 2) <= bar);
}

/* ---- since when, and how fast */

/*
 * The least squares fit of a level that becomes a slope at one of the points: that point. The slope is
 * then that of the points after it, through the level.
 */
static void fit_slope(const struct trend_point *points, size_t count, struct trend *trend)
{
	double best = INFINITY;

	for (size_t since = 0; since + 2 < count; since++) {
		double u = 0, uu = 0, y = 0, uy = 0, yy = 0;
		const double n = (double)count;

		for (size_t i = 0; i < count; i++) {
			const double after_s = i > since ? points[i].time_s - points[since].time_s : 0;
			const double bytes = points[i].inuse_bytes;

			u += after_s;
			uu += after_s * after_s;
			y += bytes;
			uy += after_s * bytes;
			yy += bytes * bytes;
		}
		const double spread = uu - u * u / n, slope = spread > 0 ? (uy - u * y / n) / spread : 0;
		const double rest = yy - y * y / n - slope * slope * spread;

		if (rest < best) {
			const double length_s = points[count - 1].time_s - points[since].time_s;
			const double sampling =
			    variance_between(&points[since], &points[count - 1]) / (length_s * length_s);
			const double residual = fmax(rest, 0) / fmax(n - 3, 1) / spread;

			best = rest;
			trend->since = since;
			trend->bytes_per_s = slope;
			trend->bytes_per_s_variance = fmax(sampling, residual);
		}
	}
	trend->until = count - 1;
}

static struct trend grows(const struct trend_point *points, size_t count)
{
	struct trend trend = {.kind = TREND_GROWS};

	fit_slope(points, count, &trend);
	trend.bytes = points[trend.until].inuse_bytes - points[trend.since].inuse_bytes;
	trend.variance = variance_between(&points[trend.since], &points[trend.until]);
	return trend;
}

/* A rise that has ended: the largest after which nothing falls below its end any more, up to where nearly
 * all of it was there. */
static struct trend rose(const struct trend_point *points, size_t count, double bar)
{
	struct trend trend = {.kind = TREND_NONE};
	struct rise best = {.bytes = 0}, rise;
	double least = INFINITY, most = 0, since_bytes = 0;

	for (size_t until = count; until-- > 1;) {
		const double points_since = (double)(count - until);

		least = fmin(least, points[until].inuse_bytes);
		since_bytes += points[until].inuse_bytes;
		if (points_since < FLAT_POINTS_LEAST || least <= (1 - SMALL_PART) * most ||
		    !find_kept(points, until, least, bar, &rise) ||
		    since_bytes / points_since - least > FLAT_PART * rise.bytes)
			continue;
		most = fmax(most, rise.bytes);
		if (rise.bytes >= (1 - SMALL_PART) * most)
			best = rise;
	}
	if (best.bytes <= 0)
		return trend;
	/* It began at the last point that is still at the bottom. */
	for (size_t i = best.since; i < best.until; i++)
		if (points[i].inuse_bytes <= best.base_bytes + SMALL_PART * best.bytes)
			trend.since = i;
	trend.kind = TREND_ROSE;
	trend.until = best.until;
	trend.bytes = best.bytes;
	trend.variance = variance_between(&points[trend.since], &points[trend.until]);
	return trend;
}

struct trend trend_find(const struct trend_point *points, size_t count, double bar)
{
	const struct trend none = {.kind = TREND_NONE};
	struct trend trend;
	struct rise rise;

	if (count < TREND_POINTS_LEAST)
		return none;
	trend = grows(points, count);
	if (trend.bytes > 0 && trend.bytes_per_s > 0) {
		if (find_kept(points, count - 1, points[count - 1].inuse_bytes, bar, &rise) &&
		    has_steps(points, &rise) && goes_on(points, count, trend.since, rise.bytes))
			return trend;
		if (is_in_order(points, count, bar) && goes_on(points, count, 0, trend.bytes))
			return trend;
	}
	return isnan(points[0].allocated_bytes) ? none : rose(points, count, bar);
}

/* ---- a series that is asked again and again */

static const struct series_shape series_points = {.point_bytes = sizeof(struct trend_point),
    .points_max = TREND_SERIES_POINTS,
    .first_step_ns = INT64_C(5000000000)};

bool trend_series_is_due(const struct trend_series *trend, double time_s)
{
	const struct series *series = &trend->series;
	const struct trend_point *points = series->points;

	return !series->count || time_s - points[series->count - 1].time_s >= (double)series->step_ns / 1e9;
}

void trend_series_note(struct trend_series *trend, const struct trend_point *point)
{
	struct trend_point *added = series_add(&trend->series, &series_points);

	if (!added)
		return;
	*added = *point;
	trend->noted++;
}

const struct trend *trend_series_find(struct trend_series *trend)
{
	if (trend->series.count < TREND_POINTS_LEAST)
		return NULL;
	/* Each point that was noted was an occasion to ask, also those that were dropped. */
	if (trend->found_of != trend->noted)
		trend->found =
		    trend_find(trend->series.points, trend->series.count, trend_bar(1, trend->noted));
	trend->found_of = trend->noted;
	return &trend->found;
}

void trend_series_fini(struct trend_series *trend)
{
	series_fini(&trend->series);
	*trend = (struct trend_series){0};
}

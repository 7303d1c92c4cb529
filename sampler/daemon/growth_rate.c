/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/growth_rate.h"

#include <math.h>
#include <string.h>

/* Else the line through a heap that has grown in one step has no error at all. */
#define ALIKE_MOST 0.98

static const uint64_t first_every_ns = UINT64_C(10) * 1000000000;

static void thin(struct growth_rate *growth)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < growth->count; i += 2)
		growth->points[kept++] = growth->points[i];
	growth->count = kept;
	growth->every_ns *= 2;
}

void growth_rate_note(struct growth_rate *growth, uint64_t now_ns, double bytes, double variance)
{
	if (!growth->every_ns)
		growth->every_ns = first_every_ns;
	if (growth->count && now_ns - growth->points[growth->count - 1].time_ns < growth->every_ns)
		return;
	if (growth->count == GROWTH_RATE_POINTS)
		thin(growth);
	growth->points[growth->count++] = (struct growth_rate_point){now_ns, bytes, variance};
}

struct line {
	double slope, error; /* bytes per hour; NaN: no line */
};

static double time_of(const struct growth_rate_point *points, uint32_t i)
{
	return (double)(points[i].time_ns - points[0].time_ns) / 3600e9;
}

/* The variance of the slope from the residuals. If each is like the one before, there are so many fewer
 * readings in truth, by their first autocorrelation (Bayley and Hammersley, 1946). */
static double variance_of(double squares, double products, uint32_t count, double spread)
{
	double alike = squares > 0 ? products / squares : 0;
	alike = alike < 0 ? 0 : alike > ALIKE_MOST ? ALIKE_MOST : alike;
	return squares / (count - 2) / spread * (1 + alike) / (1 - alike);
}

static struct line fit(const struct growth_rate_point *points, uint32_t count)
{
	double mean_time = 0, mean_bytes = 0, spread = 0, slope = 0, sampling = 0;
	double squares = 0, products = 0, before = 0;
	for (uint32_t i = 0; i < count; i++) {
		mean_time += time_of(points, i) / count;
		mean_bytes += points[i].bytes / count;
	}
	for (uint32_t i = 0; i < count; i++) {
		const double time = time_of(points, i) - mean_time;
		spread += time * time;
		slope += time * (points[i].bytes - mean_bytes);
		sampling += time * time * points[i].variance;
	}
	if (!(spread > 0))
		return (struct line){NAN, NAN};
	slope /= spread;
	for (uint32_t i = 0; i < count; i++) {
		const double off = points[i].bytes - mean_bytes - slope * (time_of(points, i) - mean_time);
		squares += off * off;
		products += off * before;
		before = off;
	}
	const double by_residuals = variance_of(squares, products, count, spread),
	             by_sampling = sampling / spread / spread;
	return (struct line){slope, sqrt(by_residuals > by_sampling ? by_residuals : by_sampling)};
}

static bool is_sure(const struct line *line)
{
	return fabs(line->slope) > 2 * line->error;
}

void growth_rate_fit(const struct growth_rate *growth, double *bytes_per_hour, bool *significant)
{
	*bytes_per_hour = NAN;
	*significant = false;
	if (growth->count < GROWTH_RATE_LEAST)
		return;
	const struct line whole = fit(growth->points, growth->count);
	*bytes_per_hour = whole.slope;
	if (growth->count < GROWTH_RATE_SURE)
		return;
	const uint32_t half = growth->count / 2;
	const struct line later = fit(growth->points + half, growth->count - half);
	/* A heap that only fills up slows down. */
	*significant = is_sure(&whole) && is_sure(&later) && later.slope / whole.slope >= 0.5;
}

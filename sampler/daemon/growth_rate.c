/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/growth_rate.h"

#include <math.h>
#include <string.h>

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

struct sums {
	double time, bytes, variance;
};

static struct sums means(const struct growth_rate *growth)
{
	struct sums mean = {0};
	for (uint32_t i = 0; i < growth->count; i++) {
		mean.time += (double)(growth->points[i].time_ns - growth->points[0].time_ns) / 3600e9;
		mean.bytes += growth->points[i].bytes;
	}
	mean.time /= growth->count;
	mean.bytes /= growth->count;
	return mean;
}

void growth_rate_fit(const struct growth_rate *growth, double *bytes_per_hour, bool *significant)
{
	double spread = 0, slope = 0, residual = 0, sampling = 0;
	*bytes_per_hour = NAN;
	*significant = false;
	if (growth->count < GROWTH_RATE_LEAST)
		return;
	const struct sums mean = means(growth);
	for (uint32_t i = 0; i < growth->count; i++) {
		const struct growth_rate_point *point = &growth->points[i];
		double time = (double)(point->time_ns - growth->points[0].time_ns) / 3600e9 - mean.time;
		spread += time * time;
		slope += time * (point->bytes - mean.bytes);
		sampling += time * time * point->variance;
	}
	if (!(spread > 0))
		return;
	slope /= spread;
	for (uint32_t i = 0; i < growth->count; i++) {
		const struct growth_rate_point *point = &growth->points[i];
		double time = (double)(point->time_ns - growth->points[0].time_ns) / 3600e9 - mean.time;
		double off = point->bytes - mean.bytes - slope * time;
		residual += off * off;
	}
	double by_residuals = residual / (growth->count - 2) / spread, by_sampling = sampling / spread / spread;
	double variance = by_residuals > by_sampling ? by_residuals : by_sampling;
	*bytes_per_hour = slope;
	*significant = fabs(slope) > 2 * sqrt(variance);
}

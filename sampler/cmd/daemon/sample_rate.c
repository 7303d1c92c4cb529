/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/sample_rate.h"

double sample_rate_judge(struct sample_rate *rate, uint64_t samples, uint64_t now_ns, double per_hour)
{
	/* The samples of a process that has ended do not count any more, so `samples` may fall. */
	const double came = samples > rate->samples ? (double)(samples - rate->samples) : 0;
	const double wanted = per_hour * (double)(now_ns - rate->since_ns) / 3600e9;

	if (samples < rate->samples)
		rate->samples = samples;
	if (came < SAMPLE_RATE_ENOUGH && wanted < SAMPLE_RATE_ENOUGH)
		return 0;
	*rate = (struct sample_rate){now_ns, samples};
	const double factor = (came + 1) / (wanted + 1);
	return factor > SAMPLE_RATE_STEP      ? SAMPLE_RATE_STEP
	    : factor < 1.0 / SAMPLE_RATE_STEP ? 1.0 / SAMPLE_RATE_STEP
	                                      : factor;
}

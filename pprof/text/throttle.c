/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/throttle.h"

void throttle_fill(struct throttle *throttle, const struct throttle_rate *rate, uint64_t now_ns)
{
	const uint64_t steps =
	    now_ns > throttle->filled_ns ? (now_ns - throttle->filled_ns) / rate->step_ns : 0;
	int64_t left;

	if (!throttle->filled_ns || __builtin_mul_overflow(steps, rate->units, &left) ||
	    __builtin_add_overflow(left, throttle->left, &left) || left >= rate->burst) {
		*throttle = (struct throttle){.left = rate->burst, .filled_ns = now_ns};
		return;
	}
	throttle->left = left;
	throttle->filled_ns += steps * rate->step_ns;
}

bool throttle_allows(struct throttle *throttle, const struct throttle_rate *rate, uint64_t now_ns)
{
	throttle_fill(throttle, rate, now_ns);
	return throttle->left > 0;
}

void throttle_spend(struct throttle *throttle, uint64_t units)
{
	const int64_t spent = units < INT64_MAX ? (int64_t)units : INT64_MAX;

	if (__builtin_sub_overflow(throttle->left, spent, &throttle->left))
		throttle->left = INT64_MIN;
}

bool throttle_take(struct throttle *throttle, const struct throttle_rate *rate, uint64_t now_ns)
{
	const bool allowed = throttle_allows(throttle, rate, now_ns);

	if (allowed)
		throttle_spend(throttle, 1);
	return allowed;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/self_limits.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/core/heap_capture.h"
#include "sampler/core/own_resources.h"

enum { LOOK_NS = 1000 * 1000000 };

enum self_limits_verdict self_limits_look(struct self_limits *limits, uint64_t now_ns)
{
	if (now_ns - limits->looked_ns < LOOK_NS)
		return SELF_LIMITS_FINE;
	uint64_t elapsed_ns = now_ns - limits->looked_ns, cpu = own_resources_cpu_ns(),
	         used_ns = cpu - limits->cpu_ns;
	bool first = limits->looked_ns == 0;
	limits->looked_ns = now_ns;
	limits->cpu_ns = cpu;
	if (limits->rss_max_bytes && own_resources_rss_bytes() > limits->rss_max_bytes)
		return SELF_LIMITS_MEMORY;
	if (!first && limits->cpu_max_percent && used_ns > elapsed_ns / 100 * limits->cpu_max_percent)
		return SELF_LIMITS_CPU;
	return SELF_LIMITS_FINE;
}

void self_limits_apply(struct self_limits *limits, struct heap_capture *heap)
{
	const enum self_limits_verdict verdict = self_limits_look(limits, clock_now_ns());
	char period[AMOUNT_BYTES];

	if (verdict == SELF_LIMITS_FINE || heap->source.period_bytes >= PERIOD_BYTES_MAX)
		return;
	heap->source.period_bytes *= 2;
	limits->raised++;
	registry_set_period(&heap->registry, heap->source.period_bytes);
	if (heap->verbosity > 0 || limits->raised == 1)
		log_line("the sampler is above %s: the sampling period is doubled to %s",
		    verdict == SELF_LIMITS_MEMORY ? "--max-rss" : "--max-cpu",
		    amount_bytes((double)heap->source.period_bytes, period));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/load_limiter.h"

/* In thousandths of the limit. */
static uint64_t cpu_share(const struct load_limiter_limits *limits, uint64_t used_ns, uint64_t passed_ns)
{
	return limits->cpu_percent ? used_ns * 100000 / passed_ns / limits->cpu_percent : 0;
}

static uint64_t memory_share(const struct load_limiter_limits *limits, uint64_t bytes)
{
	return limits->memory_bytes ? bytes / (limits->memory_bytes / 1000 + 1) : 0;
}

enum { FAR_ABOVE = 2000 };

/* The mean CPU time of the last looks. Looks from before the last change of the periods do not count. */
static uint64_t mean(const struct load_limiter *load)
{
	const uint32_t count = load->looks < LOAD_LIMITER_MEAN_LOOKS ? load->looks : LOAD_LIMITER_MEAN_LOOKS;
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= count; i++)
		sum += load->cpu_shares[(load->looks - i) % LOAD_LIMITER_MEAN_LOOKS];
	return count ? sum / count : 0;
}

/* The CPU time to judge by: the mean. While the periods are as configured, a value far above the limit
 * counts at once. 0 if there is no value yet. */
static uint64_t level(const struct load_limiter *load, uint64_t cpu)
{
	if (cpu > FAR_ABOVE && !load->raised)
		return cpu;
	return load->looks < LOAD_LIMITER_MEAN_LOOKS ? 0 : mean(load);
}

/* Has the CPU time fallen to about a half? It does so if samples took the time, since twice the period makes
 * half the samples. If other work took the time, twice the period does not halve it. */
static bool is_half(uint64_t cpu, uint64_t before)
{
	return cpu * 20 <= before * 13;
}

static void lower(struct load_limiter *load)
{
	load->raised_at[--load->raised] = 0;
	load->judge = false;
}

/* Takes the last raise back if it has not helped. Returns whether it did. */
static bool take_back(struct load_limiter *load, uint64_t cpu)
{
	if (!load->judge || !load->raised || load->looks < LOAD_LIMITER_MEAN_LOOKS)
		return false;
	const uint64_t before = load->raised_at[load->raised - 1];
	load->judge = false;
	if (is_half(cpu, before) || (cpu <= 1000 && cpu * 10 <= before * 9))
		return false;
	lower(load);
	load->rest = LOAD_LIMITER_REST_LOOKS;
	return true;
}

/* Undoes the last raise if the CPU time is again what it was before. Returns whether it did. Either there
 * is more work by now; then the raise comes again. Or the time had fallen for another reason. */
static bool doubt(struct load_limiter *load, uint64_t cpu)
{
	const uint64_t before = load->raised ? load->raised_at[load->raised - 1] : 0;

	if (cpu <= 1000 || load->rest || !before || is_half(cpu, before))
		return false;
	lower(load);
	return true;
}

static bool raise_period(struct load_limiter *load, uint64_t cpu, uint64_t memory)
{
	const bool by_cpu = cpu > 1000 && !load->rest;

	if ((!by_cpu && memory <= 1000) || load->raised == LOAD_LIMITER_RAISED_MAX)
		return false;
	load->by_memory = memory > 1000;
	load->judge = !load->by_memory;
	load->raised_at[load->raised++] = load->by_memory ? 0 : cpu;
	return true;
}

static bool change(struct load_limiter *load, uint64_t cpu, uint64_t memory)
{
	if (raise_period(load, cpu, memory))
		return true;
	if (load->calm < LOAD_LIMITER_CALM_LOOKS || !load->raised)
		return false;
	lower(load);
	return true;
}

bool load_limiter_look(struct load_limiter *load, const struct load_limiter_limits *limits,
    const struct load_limiter_reading *reading, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - load->looked_ns;
	const bool first = load->looked_ns == 0;

	if (passed_ns < LOAD_LIMITER_WINDOW_S * UINT64_C(1000000000))
		return false;
	const uint64_t cpu = cpu_share(limits, reading->cpu_ns - load->cpu_ns, passed_ns);
	const uint64_t memory = memory_share(limits, reading->memory_bytes);
	load->looked_ns = now_ns;
	load->cpu_ns = reading->cpu_ns;
	if (first)
		return false;
	load->cpu_shares[load->looks++ % LOAD_LIMITER_MEAN_LOOKS] = cpu;
	load->calm = mean(load) < 700 && memory < 333 ? load->calm + 1 : 0;
	const bool resting = load->rest > 0;
	const uint64_t judged = level(load, cpu);
	const bool taken_back = take_back(load, judged);
	const bool doubted = !taken_back && memory <= 1000 && doubt(load, judged);
	const bool changed = taken_back || doubted || change(load, judged, memory);
	load->rest -= resting && load->rest > 0;
	if (!changed)
		return false;
	load->doubted = doubted;
	load->calm = 0;
	load->looks = 0;
	return true;
}

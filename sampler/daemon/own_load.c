/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/own_load.h"

#include "sampler/linux/proc.h"

#include <sys/resource.h>
#include <unistd.h>

static uint64_t timeval_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

void own_load_read(struct own_load_reading *reading)
{
	struct rusage usage;
	char status[4096];

	*reading = (struct own_load_reading){0};
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		reading->cpu_ns = timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
	(void)proc_read(getpid(), "status", status, sizeof(status));
	reading->memory_bytes = proc_status_number(status, "\nRssAnon:", 10, 0) << 10;
}

/* In thousandths of the limit. */
static uint64_t cpu_share(const struct own_load_limits *limits, uint64_t used_ns, uint64_t passed_ns)
{
	return limits->cpu_percent ? used_ns * 100000 / passed_ns / limits->cpu_percent : 0;
}

static uint64_t memory_share(const struct own_load_limits *limits, uint64_t bytes)
{
	return limits->memory_bytes ? bytes / (limits->memory_bytes / 1000 + 1) : 0;
}

enum { FAR_ABOVE = 2000 };

/* Of the last looks since the periods were last changed, which is not before the first of them. */
static uint64_t mean(const struct own_load *load)
{
	const uint32_t count = load->looks < OWN_LOAD_MEAN_LOOKS ? load->looks : OWN_LOAD_MEAN_LOOKS;
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= count; i++)
		sum += load->cpu_shares[(load->looks - i) % OWN_LOAD_MEAN_LOOKS];
	return count ? sum / count : 0;
}

/* The CPU time to judge by: the mean, or as long as the periods are as configured what is far above the limit
 * at once. 0: there is none yet. */
static uint64_t level(const struct own_load *load, uint64_t cpu)
{
	if (cpu > FAR_ABOVE && !load->raised)
		return cpu;
	return load->looks < OWN_LOAD_MEAN_LOOKS ? 0 : mean(load);
}

/* Half as many samples are half of the work that they make. Whatever else it is that takes the CPU time, be
 * it somebody who makes it less at each raise, goes on as before. */
static bool is_half(uint64_t cpu, uint64_t before)
{
	return cpu * 20 <= before * 13;
}

static void lower(struct own_load *load)
{
	load->raised_at[--load->raised] = 0;
	load->judge = false;
}

/* True: the last raise has not helped, and is taken back. */
static bool take_back(struct own_load *load, uint64_t cpu)
{
	if (!load->judge || !load->raised || load->looks < OWN_LOAD_MEAN_LOOKS)
		return false;
	const uint64_t before = load->raised_at[load->raised - 1];
	load->judge = false;
	if (is_half(cpu, before) || (cpu <= 1000 && cpu * 10 <= before * 9))
		return false;
	lower(load);
	load->rest = OWN_LOAD_REST_LOOKS;
	return true;
}

/* True: it is as much as before the last raise, which is undone. There is more work now, and then the raise
 * comes again; or it was something else that fell when we raised. */
static bool doubt(struct own_load *load, uint64_t cpu)
{
	const uint64_t before = load->raised ? load->raised_at[load->raised - 1] : 0;

	if (cpu <= 1000 || load->rest || !before || is_half(cpu, before))
		return false;
	lower(load);
	return true;
}

static bool raise_period(struct own_load *load, uint64_t cpu, uint64_t memory)
{
	const bool by_cpu = cpu > 1000 && !load->rest;

	if ((!by_cpu && memory <= 1000) || load->raised == OWN_LOAD_RAISED_MAX)
		return false;
	load->by_memory = memory > 1000;
	load->judge = !load->by_memory;
	load->raised_at[load->raised++] = load->by_memory ? 0 : cpu;
	return true;
}

static bool change(struct own_load *load, uint64_t cpu, uint64_t memory)
{
	if (raise_period(load, cpu, memory))
		return true;
	if (load->calm < OWN_LOAD_CALM_LOOKS || !load->raised)
		return false;
	lower(load);
	return true;
}

bool own_load_look(struct own_load *load, const struct own_load_limits *limits,
    const struct own_load_reading *reading, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - load->looked_ns;
	const bool first = load->looked_ns == 0;

	if (passed_ns < OWN_LOAD_WINDOW_S * UINT64_C(1000000000))
		return false;
	const uint64_t cpu = cpu_share(limits, reading->cpu_ns - load->cpu_ns, passed_ns);
	const uint64_t memory = memory_share(limits, reading->memory_bytes);
	load->looked_ns = now_ns;
	load->cpu_ns = reading->cpu_ns;
	if (first)
		return false;
	load->cpu_shares[load->looks++ % OWN_LOAD_MEAN_LOOKS] = cpu;
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

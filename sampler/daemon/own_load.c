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

/* The CPU time to judge by: the mean since the last change, or what is far above the limit at once. False:
 * there is none yet. */
static bool level(const struct own_load *load, uint64_t cpu, uint64_t *judged)
{
	uint64_t sum = 0;
	*judged = cpu;
	if (cpu > FAR_ABOVE)
		return true;
	if (load->looks < OWN_LOAD_MEAN_LOOKS)
		return false;
	for (size_t i = 0; i < OWN_LOAD_MEAN_LOOKS; i++)
		sum += load->cpu_shares[i];
	*judged = sum / OWN_LOAD_MEAN_LOOKS;
	return true;
}

/* True: the last raise has not made the CPU time less, by a tenth at least, and is taken back. */
static bool take_back(struct own_load *load, uint64_t cpu)
{
	const uint64_t before = load->cpu_share_raised;
	load->cpu_share_raised = 0;
	if (!before || !load->raised || cpu * 10 <= before * 9)
		return false;
	load->raised--;
	load->rest = OWN_LOAD_REST_LOOKS;
	return true;
}

static bool raise_period(struct own_load *load, uint64_t cpu, uint64_t memory)
{
	const bool by_cpu = cpu > 1000 && !load->rest;
	load->rest -= load->rest > 0;
	if ((!by_cpu && memory <= 1000) || load->raised == OWN_LOAD_RAISED_MAX)
		return false;
	load->raised++;
	load->by_memory = memory > 1000;
	load->cpu_share_raised = load->by_memory ? 0 : cpu;
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
	load->calm = cpu < 700 && memory < 333 ? load->calm + 1 : 0;
	uint64_t judged;
	const bool whole = level(load, cpu, &judged);
	if (!(whole && take_back(load, judged)) && !raise_period(load, whole ? judged : 0, memory)) {
		if (load->calm < OWN_LOAD_CALM_LOOKS || !load->raised)
			return false;
		load->raised--;
	}
	load->calm = 0;
	load->looks = 0;
	return true;
}

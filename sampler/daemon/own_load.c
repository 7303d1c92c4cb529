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

/* In thousandths of the limits, the larger of both. */
static uint64_t share(const struct own_load_limits *limits, uint64_t used_ns, uint64_t passed_ns, uint64_t bytes)
{
	uint64_t cpu = limits->cpu_percent ? used_ns * 100000 / passed_ns / limits->cpu_percent : 0;
	uint64_t memory = limits->memory_bytes ? bytes / (limits->memory_bytes / 1000 + 1) : 0;
	return cpu > memory ? cpu : memory;
}

bool own_load_look(struct own_load *load, const struct own_load_limits *limits,
    const struct own_load_reading *reading, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - load->looked_ns;
	const bool first = load->looked_ns == 0;
	if (passed_ns < OWN_LOAD_WINDOW_S * UINT64_C(1000000000))
		return false;
	const uint64_t now = share(limits, reading->cpu_ns - load->cpu_ns, passed_ns, reading->memory_bytes);
	load->looked_ns = now_ns;
	load->cpu_ns = reading->cpu_ns;
	if (first)
		return false;
	load->calm = now < 333 ? load->calm + 1 : 0;
	if (now > 1000 && load->raised < OWN_LOAD_RAISED_MAX) {
		load->raised++;
		return true;
	}
	if (load->calm < OWN_LOAD_CALM_LOOKS || !load->raised)
		return false;
	load->calm = 0;
	load->raised--;
	return true;
}

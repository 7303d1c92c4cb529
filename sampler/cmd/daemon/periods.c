/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/periods.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/books/program_run.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/load_limiter.h"
#include "sampler/core/own_resources.h"
#include "sampler/intake/target_plan.h"

double periods_factor(struct periods_rate *rate, uint64_t samples, uint64_t now_ns, double per_hour)
{
	/* The samples of a process that has ended do not count any more, so `samples` may fall. */
	const double came = samples > rate->samples ? (double)(samples - rate->samples) : 0;
	const double wanted = per_hour * (double)(now_ns - rate->since_ns) / 3600e9;

	if (samples < rate->samples)
		rate->samples = samples;
	if (came < PERIODS_RATE_ENOUGH && wanted < PERIODS_RATE_ENOUGH)
		return 0;
	*rate = (struct periods_rate){now_ns, samples};
	const double factor = (came + 1) / (wanted + 1);
	return factor > PERIODS_RATE_STEP      ? PERIODS_RATE_STEP
	    : factor < 1.0 / PERIODS_RATE_STEP ? 1.0 / PERIODS_RATE_STEP
	                                       : factor;
}

static void set_period(struct program_run *run, double period_bytes)
{
	program_run_set_period(run,
	    period_bytes < 1                              ? 1
	        : period_bytes > (double)PERIOD_BYTES_MAX ? PERIOD_BYTES_MAX
	                                                  : (uint64_t)period_bytes);
}

void periods_scale(struct daemon *d)
{
	books_each_run(run, &d->core.heap.intake.books) if (run->plan && run->plan->period_bytes)
	    set_period(run, (double)run->plan->period_bytes * (double)(1u << d->load.raised));
}

/* The limiter has changed load.raised, which was `before`. */
static void load_changed(struct daemon *d, uint32_t before)
{
	const double factor = (double)(1u << d->load.raised) / (double)(1u << before);

	books_each_run(run, &d->core.heap.intake.books) if (run->plan && run->plan->samples_per_hour)
	    set_period(run, (double)run->period.bytes * factor);
	periods_scale(d);
}

void periods_limit_load(struct daemon *d, uint64_t now_ns)
{
	const struct load_limiter_limits limits = {
	    d->rules->daemon.cpu_percent, d->rules->daemon.memory_bytes};

	if (now_ns - d->load.looked_ns < LOAD_LIMITER_WINDOW_S * (uint64_t)CLOCK_NS_PER_S)
		return;
	const struct load_limiter_reading reading = {own_resources_cpu_ns(), own_resources_private_bytes()};
	const uint32_t before = d->load.raised;
	if (!load_limiter_look(&d->load, &limits, &reading, now_ns))
		return;
	load_changed(d, before);
	if (d->load.rest == LOAD_LIMITER_REST_LOOKS)
		log_line("larger sampling periods do not reduce the daemon's CPU time: they are %u times the "
		         "configured ones",
		    1u << d->load.raised);
	else
		log_line("the daemon is %s: sampling periods are %u times the configured ones",
		    d->load.doubted ? "no less busy since it raised the sampling periods, so it lowers them"
		        : d->load.raised <= before ? "well within its limits of CPU time and memory"
		        : d->load.by_memory        ? "above its limit of memory"
		                                   : "above its limit of CPU time",
		    1u << d->load.raised);
}

void periods_tune(struct daemon *d)
{
	const uint64_t now_ns = clock_now_ns();

	books_each_run(run, &d->core.heap.intake.books)
	{
		const struct target_plan *plan = run->plan;
		uint64_t samples = 0;

		if (!plan || !plan->samples_per_hour)
			continue;
		program_run_each_process(process, run) samples += process_samples(process);
		struct periods_rate rate = {
		    run->tuning.since_ns ? run->tuning.since_ns : run->claimed_ns, run->tuning.samples};
		const double wanted = (double)plan->samples_per_hour / (double)(1u << d->load.raised);
		const double factor = periods_factor(&rate, samples, now_ns, wanted);
		run->tuning.since_ns = rate.since_ns;
		run->tuning.samples = rate.samples;
		if (factor > 0)
			set_period(run, (double)run->period.bytes * factor);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/periods.h"

#include "pprof/text/clock.h"
#include "sampler/books/program_run.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/sample_rate.h"
#include "sampler/intake/target_plan.h"

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

void periods_load_changed(struct daemon *d, uint32_t before)
{
	const double factor = (double)(1u << d->load.raised) / (double)(1u << before);

	books_each_run(run, &d->core.heap.intake.books) if (run->plan && run->plan->samples_per_hour)
	    set_period(run, (double)run->period.bytes * factor);
	periods_scale(d);
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
		struct sample_rate rate = {
		    run->tuning.since_ns ? run->tuning.since_ns : run->claimed_ns, run->tuning.samples};
		const double wanted = (double)plan->samples_per_hour / (double)(1u << d->load.raised);
		const double factor = sample_rate_judge(&rate, samples, now_ns, wanted);
		run->tuning.since_ns = rate.since_ns;
		run->tuning.samples = rate.samples;
		if (factor > 0)
			set_period(run, (double)run->period.bytes * factor);
	}
}

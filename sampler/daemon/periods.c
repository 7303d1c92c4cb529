/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/periods.h"

#include "sampler/daemon/daemon_state.h"
#include "sampler/daemon/sample_rate.h"
#include "sampler/heap/heap.h"
#include "sampler/linux/clock.h"
#include "sampler/target/target_plan.h"

/* A profile with period 1 says that it has every allocation. That is not true of the allocations before
 * the period became 1, even if none of them was sampled: so the heap notes the earlier period. */
static void note_before(struct image *image, uint64_t before_bytes)
{
	if (image->period_bytes >= before_bytes)
		return;
	image->lowered_unix_ns = clock_unix_ns();
	for (uint32_t i = 0; i < image->places_end; i++)
		if (image->process[i] && image->period_bytes == 1)
			heap_note_period(image->process[i]->heap, before_bytes);
}

static void set_period(struct image *image, double period_bytes)
{
	const uint64_t before_bytes = image->period_bytes;

	image->period_bytes = period_bytes < 1        ? 1
	    : period_bytes > (double)PERIOD_BYTES_MAX ? PERIOD_BYTES_MAX
	                                              : (uint64_t)period_bytes;
	note_before(image, before_bytes);
	region_set_period(region_header(image->region), image->period_bytes);
}

void periods_scale(struct daemon *d)
{
	for (struct image *image = d->core.heap.intake.images; image; image = image->next)
		if (image->plan && image->plan->period_bytes)
			set_period(image, (double)image->plan->period_bytes * (double)(1u << d->load.raised));
}

void periods_load_changed(struct daemon *d, uint32_t before)
{
	const double factor = (double)(1u << d->load.raised) / (double)(1u << before);

	for (struct image *image = d->core.heap.intake.images; image; image = image->next)
		if (image->plan && image->plan->samples_per_hour)
			set_period(image, (double)image->period_bytes * factor);
	periods_scale(d);
}

void periods_tune(struct daemon *d)
{
	const uint64_t now_ns = clock_now_ns();

	for (struct image *image = d->core.heap.intake.images; image; image = image->next) {
		const struct target_plan *plan = image->plan;
		uint64_t samples = 0;

		if (!plan || !plan->samples_per_hour)
			continue;
		for (uint32_t i = 0; i < image->places_end; i++)
			samples += image->process[i] ? process_samples(image->process[i]) : 0;
		struct sample_rate rate = {
		    image->tuned_ns ? image->tuned_ns : image->claimed_ns, image->tuned_samples};
		const double wanted = (double)plan->samples_per_hour / (double)(1u << d->load.raised);
		const double factor = sample_rate_judge(&rate, samples, now_ns, wanted);
		image->tuned_ns = rate.since_ns;
		image->tuned_samples = rate.samples;
		if (factor > 0)
			set_period(image, (double)image->period_bytes * factor);
	}
}

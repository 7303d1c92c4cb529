/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/tally.h"

#include "preload/one_thread.h"

#include <stdatomic.h>

static void add(struct region_tally *tally, struct weighed weight)
{
	one_thread_add(&tally->samples, 1);
	one_thread_add(&tally->bytes_q8, weight.bytes_q8);
	one_thread_add(&tally->objects_q16, weight.objects_q16);
}

static void subtract(struct region_tally *tally, struct weighed weight)
{
	one_thread_add(&tally->samples, -UINT64_C(1));
	one_thread_add(&tally->bytes_q8, -weight.bytes_q8);
	one_thread_add(&tally->objects_q16, -weight.objects_q16);
}

void tally_allocated(struct weighed weight)
{
	add(&place_self()->allocated, weight);
}

void tally_lost(enum region_loss cause, const struct region_sample *sample)
{
	add(&place_self()->lost[cause], weigh(sample->size_bytes, UINT64_MAX, sample->period_bytes));
}

/* Where every allocation is a sample, nothing varies, and the cache line need not be locked. */
static void raise(_Atomic uint64_t *sum, uint64_t more)
{
	if (more)
		atomic_fetch_add_explicit(sum, more, memory_order_relaxed);
}

static void lower(_Atomic uint64_t *sum, uint64_t less)
{
	if (less)
		atomic_fetch_sub_explicit(sum, less, memory_order_relaxed);
}

static _Atomic uint64_t *bytes_variance_of(struct region_place *place, struct weighed weight)
{
	return weight.large ? &place->live_large_variance : &place->live_variance;
}

static void raise_peak_order(struct region_place *place, uint64_t order)
{
	uint64_t old = atomic_load_explicit(&place->peak_order, memory_order_relaxed);

	while (old < order && !one_thread_exchange64(&place->peak_order, &old, order))
		;
}

void tally_live_add(struct weighed weight, uint64_t now_ns, uint64_t seq)
{
	struct region_place *place = place_self();

	add(&place->live, weight);
	raise(bytes_variance_of(place, weight), weight.bytes_variance);
	if (place_view.region.no_peak)
		return;
	uint64_t bytes = atomic_load_explicit(&place->live.bytes_q8, memory_order_relaxed);
	uint64_t peak = atomic_load_explicit(&place->peak_bytes_q8, memory_order_relaxed);
	while (bytes > peak && (int64_t)bytes > 0) {
		if (!one_thread_exchange64(&place->peak_bytes_q8, &peak, bytes))
			continue;
		raise_peak_order(place, seq + 1);
		/* If threads race here, the other values of the peak may differ from it by a sample or
		 * two. */
		atomic_store_explicit(
		    &place->peak_objects_q16, atomic_load(&place->live.objects_q16), memory_order_relaxed);
		atomic_store_explicit(
		    &place->peak_samples, atomic_load(&place->live.samples), memory_order_relaxed);
		atomic_store_explicit(&place->peak_ns, now_ns, memory_order_relaxed);
		break;
	}
}

void tally_live_subtract(struct weighed weight)
{
	struct region_place *place = place_self();

	subtract(&place->live, weight);
	lower(bytes_variance_of(place, weight), weight.bytes_variance);
}

void tally_live_shrink(struct weighed before, struct weighed after)
{
	struct region_place *place = place_self();

	atomic_fetch_sub_explicit(
	    &place->live.bytes_q8, before.bytes_q8 - after.bytes_q8, memory_order_relaxed);
	raise(bytes_variance_of(place, after), after.bytes_variance);
	lower(bytes_variance_of(place, before), before.bytes_variance);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/arrivals.h"

#include "sampler/books/adoption.h"
#include "sampler/books/drain.h"
#include "sampler/books/offerer.h"
#include "sampler/books/process_life.h"
#include "sampler/books/program_run.h"
#include "sampler/books/registry.h"
#include "sampler/books/registry_look.h"
#include "sampler/books/stale_places.h"
#include "sampler/books/unprofiled.h"
#include "sampler/books/walked.h"

#include <errno.h>
#include <stdlib.h>

/* ---- of an earlier sampler */

static void adopt(struct registry *registry, struct program_run *run)
{
	struct run_origin *origin = &run->origin;

	registry_begin_adoption(run);
	origin->attached_after_ns = region_header(run->region)->attached_after_ns;
	origin->attached_rss_bytes = region_header(run->region)->attached_rss_bytes;
	stale_places_adopt(run);
	for (uint32_t i = 0; i < REGION_PLACES; i++) {
		struct process *process = program_run_meet(run, i, registry->setup.modules);

		if (!process)
			continue;
		if (i == 0 && origin->attached_after_ns)
			origin->attached_pid = process->target.pid;
		adoption_begin(process);
		process_life_watch(registry, process);
	}
	walked_begin(run); /* what it counts is later than what has been read of each place */
	if (origin->attached_pid)
		unprofiled_children_begin(run);
	backend_fallback_adopt(&registry->fallback, run);
}

int arrivals_adopt(struct registry *registry, struct region *region)
{
	struct program_run *run = registry_add_run(registry, region);

	if (!run)
		return -ENOMEM;
	adopt(registry, run);
	return 0;
}

/* ---- offered */

int arrivals_offer(struct registry *registry, const struct arrivals_offer *offer)
{
	struct program_run *run = registry_add_run(registry, offer->region);

	if (!run) {
		free(offer->plan);
		return -ENOMEM;
	}
	run->plan = offer->plan;
	run->origin.offered = true;
	run->origin.offered_after_ns = offer->used ? 0 : offer->after_ns;
	program_run_begin_period(run, offer->period_bytes);
	run->mapped.by = offer->pid; /* the first to be asked whether it has the region mapped */
	offerer_find(run, offer->pid, registry->setup.modules);
	if (offer->used)
		adopt(registry, run);
	return 0;
}

/* ---- attached to */

int arrivals_attach(
    struct registry *registry, struct region *region, const struct arrivals_attached *attached)
{
	struct program_run *run = registry_add_run(registry, region);

	if (!run) {
		free(attached->plan);
		return -ENOMEM;
	}
	run->plan = attached->plan;
	run->origin = (struct run_origin){.attached_pid = attached->pid,
	    .attached_after_ns = attached->after_ns,
	    .attached_rss_bytes = attached->rss_bytes,
	    .other_library = attached->other_library};
	region_header(region)->attached_after_ns = attached->after_ns + 1; /* not 0 */
	region_header(region)->attached_rss_bytes = attached->rss_bytes;
	unprofiled_children_begin(run);
	program_run_begin_period(run, attached->period_bytes);
	registry_look_claims(registry);
	return 0;
}

bool arrivals_has_attached(const struct books *books, pid_t pid)
{
	books_each_run(run, books) if (run->origin.attached_pid &&
	    region_mapped_by(run->region, pid) == REGION_MAPPED) return true;
	return false;
}

void arrivals_stop_attached(struct registry *registry)
{
	books_each_run(run, &registry->setup.intake->books) if (run->origin.attached_pid)
	    atomic_store(&region_header(run->region)->mode, REGION_MODE_OFF);
}

void arrivals_visit_attached(
    struct registry *registry, void (*visit)(void *context, const struct target *target), void *context)
{
	registry_look_ended(registry);
	books_each_process (process, &registry->setup.intake->books)
		if (process->run->origin.attached_pid && !process->target.closed)
			visit(context, &process->target);
}

void arrivals_close_attached(struct registry *registry)
{
	drain_all(registry);
	books_each_process (process, &registry->setup.intake->books)
		if (process->run->origin.attached_pid && !process->target.closed)
			process_life_close(registry, process,
			    process_life_has_ended(registry, process) ? TARGET_GONE : TARGET_DETACHED, 0);
}

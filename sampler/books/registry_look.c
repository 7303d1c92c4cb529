/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/registry_look.h"

#include "pprof/text/clock.h"
#include "sampler/books/adoption.h"
#include "sampler/books/backend_fallback.h"
#include "sampler/books/drain.h"
#include "sampler/books/executed.h"
#include "sampler/books/process_life.h"
#include "sampler/books/program_run.h"
#include "sampler/books/registry.h"
#include "sampler/books/stale_places.h"
#include "sampler/books/unprofiled.h"

#include <malloc.h>
#include <stdlib.h>

enum {
	LINGER_END_NS = 20 * 1000000, /* after COMMAND's end */
	LINGER_NS = 500 * 1000000,    /* between checks whether any process still maps a region */
	EXECUTED_NS = 10 * 1000000,   /* between looks at what the processes of a young run execute */
	OFFERED_LINGERS = 4,          /* offers are looked at every fourth time alone */
	YOUNG_NS = 1000 * 1000000,    /* the processes of an older run are looked at every LINGER_NS */
	TRIM_NS = 2000 * 1000000,     /* between returns of freed memory: runs end all the time */
	ADOPTION_NS = 20 * 1000000,   /* for a sample that was being taken when books were taken over */
};

/* ---- program runs that are ready */

static void settle_run(struct registry *registry, struct program_run *run, bool *drained)
{
	registry_settled(run);
	struct process *process = program_run_meet(run, 0, registry->setup.modules);
	if (!process)
		return;
	if (process->target.pid)
		process_life_close_executed(registry, process->target.pid, run, drained);
	process_life_watch(registry, process);
	backend_fallback_begin(&registry->fallback, run, process);
}

static int compare_runs(const void *a, const void *b)
{
	return registry_is_older(*(struct program_run *const *)a, *(struct program_run *const *)b) ? -1 : 1;
}

/* In the order in which they were executed: one process may have executed several since the last look. One
 * round, with one drain before it: program runs that become ready meanwhile wait for the next round, so
 * that ended processes are handled in between. */
static void settle_runs(struct registry *registry)
{
	const struct books *books = &registry->setup.intake->books;
	size_t count = 0, ready = 0;
	bool drained = false;

	books_each_run(run, books) ready += run->life.state == RUN_READY;
	struct program_run **batch = ready ? calloc(ready, sizeof(*batch)) : NULL;
	if (!batch)
		return;
	books_each_run(run, books) if (run->life.state == RUN_READY) batch[count++] = run;
	qsort(batch, count, sizeof(*batch), compare_runs);
	for (size_t i = 0; i < count; i++) {
		settle_run(registry, batch[i], &drained);
		registry_take_claims(registry);
	}
	free(batch);
}

size_t registry_look_claims(struct registry *registry)
{
	size_t came = registry_take_claims(registry);

	registry_find_ready(registry);
	settle_runs(registry);
	return came;
}

/* ---- a program run */

/* Some are known already, because their first sample arrived before this look. */
static void find_places(struct registry *registry, struct program_run *run)
{
	uint64_t claimed = atomic_load(&region_header(run->region)->places_claimed);

	if (claimed == run->looks.places_seen)
		return;
	run->looks.places_seen = claimed;
	for (uint32_t i = 1; i < REGION_PLACES; i++) {
		struct process *process = program_run_meet(run, i, registry->setup.modules);

		if (process && !process->target.closed)
			process_life_watch(registry, process);
	}
}

static void note_requests(struct registry *registry, struct program_run *run)
{
	uint64_t requests = atomic_load(&region_header(run->region)->requests);

	registry->looks.requests += requests != run->looks.requests_seen;
	run->looks.requests_seen = requests;
}

/* Until a program has had the time to load the library, its program run may yet become ready. */
static void look_at_executed(struct registry *registry, struct program_run *run, uint64_t now)
{
	program_run_each_process(process, run)
	{
		if (process->target.closed || !process->life.watched)
			continue;
		executed_look(process, now);
		/* Not earlier than `now`: to close another process the rings were drained meanwhile. */
		if (!process->target.unprofiled[0] || now <= process->executed.noted_ns + EXECUTED_LOADING_NS)
			continue;
		drain_run(registry, run);
		process_life_close_unseen(registry, process);
	}
}

/* linger: all program runs are looked at this time, and not the young ones alone. No profile says of an
 * offered program run that a program was not seen, and looks cost a daemon most. */
static bool is_due(const struct registry *registry, const struct program_run *run, uint64_t now, bool linger)
{
	const bool often = now - registry->looks.executed_ns >= EXECUTED_NS;

	if (run->origin.offered)
		return linger && (registry->looks.lingers + run->region->id) % OFFERED_LINGERS == 0;
	return linger || (often && now - run->claimed_ns < YOUNG_NS);
}

static void tend_run(struct registry *registry, struct program_run *run, uint64_t now, bool linger)
{
	if (run->life.state == RUN_ADOPTING && now - run->claimed_ns >= ADOPTION_NS)
		adoption_end(registry->setup.intake, run);
	if (!program_run_is_ready(run))
		return;
	find_places(registry, run);
	stale_places_tend(run, now);
	note_requests(registry, run);
	if (run->life.unchosen || !is_due(registry, run, now, linger))
		return;
	look_at_executed(registry, run, now);
	unprofiled_children_tend(run, &registry->unprofiled, registry->setup.probe->backend == BACKEND_UPROBE,
	    registry->setup.verbosity > 0, now);
}

/* ---- all */

void registry_look_ended(struct registry *registry)
{
	if (!process_life_note_ended(registry))
		return;
	drain_ended(registry); /* after the end of each */
	/* A process that has ended may have executed another program before, and be closed by its program
	 * run. */
	registry_look_claims(registry);
	process_life_close_ended(registry);
}

/* After a burst of processes returns freed memory to the kernel; glibc kept more than half of it. */
static void trim(struct registry_looks *looks, uint64_t now)
{
	if (!looks->to_trim || now - looks->trimmed_ns < TRIM_NS)
		return;
	malloc_trim(0);
	looks->trimmed_ns = now;
	looks->to_trim = false;
}

size_t registry_look_runs(struct registry *registry)
{
	const struct books *books = &registry->setup.intake->books;
	struct registry_looks *looks = &registry->looks;
	size_t came = registry_look_claims(registry);
	uint64_t now = clock_now_ns();
	bool linger = now - looks->linger_ns >= (registry->setup.launch->ended ? LINGER_END_NS : LINGER_NS);

	if (linger)
		registry_look_for_abandoned(registry, now);
	books_each_run(run, books)
	{
		tend_run(registry, run, now, linger);
		if (!linger || !registry_is_abandoned(run, now))
			continue;
		registry_remove_run(registry, run);
		looks->to_trim = true;
	}
	if (linger && registry->lives.unwatched)
		registry_look_ended(registry);
	trim(looks, now);
	if (now - looks->executed_ns >= EXECUTED_NS)
		looks->executed_ns = now;
	if (linger)
		looks->linger_ns = now;
	looks->lingers += linger;
	return came;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/registry.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "pprof/text/utf8.h"
#include "sampler/books/executed.h"
#include "sampler/books/program_run.h"
#include "sampler/books/unprofiled.h"
#include "sampler/books/walked.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* time between the ticket and a complete header; then the program run is abandoned */
	CLAIM_LIMIT_NS = 2000 * 1000000,
	/* A program run that declined is kept for so long: the process that executed it may be found
	 * later. */
	DECLINED_NS = 100 * 1000000,
};

/* A look at who has anonymous memory mapped reads the maps of one process for each program run, and now
 * and then those of all processes. After it we wait 20 times as long. */
static const struct throttle_rate look_rate = {.burst = 1, .units = 1, .step_ns = 20};

bool registry_is_older(const struct program_run *run, const struct program_run *than)
{
	return (int32_t)(run->region->id - than->region->id) < 0;
}

struct program_run *registry_add_run(struct registry *registry, struct region *region)
{
	struct program_run *run = program_run_new(region, clock_now_ns());

	if (run && books_add_run(&registry->setup.intake->books, run) == 0) {
		run->heap = registry->setup.heap;
		return run;
	}
	program_run_free(run);
	return NULL;
}

size_t registry_take_claims(struct registry *registry)
{
	struct region_pool *pool = registry->setup.pool;
	struct region *region;
	size_t count = 0;

	while (pool && (region = region_pool_next(pool)) && registry_add_run(registry, region))
		count++;
	return count;
}

/* ---- ready */

/* At once, so that a program that is not to be recorded takes as few samples as possible. Its name and
 * command line are hostile. */
static void choose(struct registry *registry, struct program_run *run)
{
	char path[REGION_PATH_BYTES], line[REGION_COMMAND_LINE_BYTES];

	if (!registry->setup.choice)
		return;
	region_program_path(run->region, path);
	region_program_command_line(run->region, line);
	utf8_disarm(path, strlen(path)); /* an expression matches characters, not bytes */
	utf8_disarm(line, strlen(line));
	run->life.unchosen = !choice_takes(registry->setup.choice, path, line);
	if (run->life.unchosen)
		atomic_store(&region_header(run->region)->mode, REGION_MODE_OFF);
}

/* The program run is counted here, with its reason, and so not once more for the process that executed it. */
static void note_declined(struct registry *registry, struct program_run *run, const char *why)
{
	const pid_t pid = program_run_pid(run);
	struct process *process;

	run->life.declined = why;
	unprofiled_note_declined(&registry->unprofiled, why);
	unprofiled_children_note_declined(&registry->setup.intake->books, pid);
	if (pid == registry->setup.launch->pid)
		unprofiled_note_command_declined(&registry->unprofiled, why);
	for (size_t cursor = 0;
	     pid && (process = table_next(&registry->setup.intake->books.processes, (uint64_t)pid, &cursor));)
		if (!process->target.closed && registry_is_older(process->run, run))
			executed_note_declined(process, why);
}

static void become_ready(struct program_run *run, enum run_state state)
{
	run->life.state = state;
	run->life.trigger_address = region_header(run->region)->trigger_address;
}

size_t registry_find_ready(struct registry *registry)
{
	size_t count = 0;

	books_each_run(run, &registry->setup.intake->books)
	{
		if (program_run_is_ready(run))
			continue;
		const char *declined = region_declined_text(run->region);
		if (declined && !run->life.declined)
			note_declined(registry, run, declined);
		if (atomic_load_explicit(&region_header(run->region)->state, memory_order_acquire) !=
		    REGION_READY)
			continue;
		become_ready(run, RUN_READY);
		backend_fallback_expect(&registry->fallback, run);
		choose(registry, run);
		count++;
	}
	return count;
}

static bool find_runs(void *context)
{
	struct registry *registry = context;

	registry_take_claims(registry);
	return registry_find_ready(registry) > 0;
}

void registry_begin_adoption(struct program_run *run)
{
	become_ready(run, RUN_ADOPTING);
}

void registry_settled(struct program_run *run)
{
	run->life.state = RUN_SETTLED;
}

/* ---- abandoned */

/* The program run has written something that the next look will find: we may be late by more than
 * CLAIM_LIMIT_NS. (In the middle of a look new program runs may be found ready, too.) */
static bool has_news(const struct program_run *run)
{
	return !program_run_is_ready(run) && !run->life.declined &&
	    (atomic_load_explicit(&region_header(run->region)->state, memory_order_acquire) == REGION_READY ||
	        region_declined_text(run->region));
}

/* Abandoned, unless a process has the region mapped: a forked child without samples so far may still claim a
 * place in it. */
static bool is_left(const struct program_run *run, uint64_t now)
{
	const struct process *first = run->places.at[0];

	if (!program_run_is_ready(run) &&
	    now - run->claimed_ns < (uint64_t)(run->life.declined ? DECLINED_NS : CLAIM_LIMIT_NS))
		return false;
	if (has_news(run) || run->life.state == RUN_READY)
		return false;
	/* The process at place 0 is kept after its release; the others are freed then. */
	return run->places.live <= (first && first->life.released);
}

bool registry_is_abandoned(const struct program_run *run, uint64_t now)
{
	if (!is_left(run, now))
		return false;
	if (!program_run_is_ready(run) && run->region->holder)
		return true; /* another user's process took the region and did not use it */
	return run->region->anonymous ? run->mapped.by_nobody : region_abandoned(run->region);
}

/* Of anonymous memory the kernel does not tell whether a process has it mapped. The process that had it at
 * the last look is asked first: mostly it still has, as a process that sleeps does for days. For all other
 * program runs together /proc is searched once. */
void registry_look_for_abandoned(struct registry *registry, uint64_t now)
{
	struct region_search *searches = NULL;
	size_t count = 0, capacity = 0;

	const uint64_t begin_ns = clock_now_ns();
	if (!throttle_allows(&registry->abandoned_looks, &look_rate, begin_ns))
		return;
	books_each_run(run, &registry->setup.intake->books)
	{
		if (!run->region->anonymous || !is_left(run, now) ||
		    region_mapped_still(run->region, run->mapped.by))
			continue;
		if (array_reserve(&searches, &capacity, count + 1, sizeof(*searches)) != 0)
			break; /* the others another time */
		searches[count++] = (struct region_search){.region = run->region, .context = run};
	}
	region_search_all(searches, count);
	for (size_t i = 0; i < count; i++) {
		struct program_run *run = searches[i].context;

		run->mapped.by = searches[i].pid;
		run->mapped.by_nobody = searches[i].answer == REGION_MAPPED_NO;
	}
	free(searches);
	throttle_spend(&registry->abandoned_looks, clock_now_ns() - begin_ns);
}

/* ---- all program runs */

void registry_set_period(struct registry *registry, uint64_t period_bytes)
{
	if (registry->setup.pool)
		region_pool_set_period(registry->setup.pool, period_bytes);
	books_each_run(run, &registry->setup.intake->books) if (!run->period.bytes) /* else it has its own */
	    region_set_period(region_header(run->region), period_bytes);
}

bool registry_empty(const struct registry *registry)
{
	return registry->setup.intake->books.runs.count == 0;
}

void registry_remove_run(struct registry *registry, struct program_run *run)
{
	if (!program_run_is_ready(run) && !run->life.declined && !run->origin.offered)
		unprofiled_note_incomplete(&registry->unprofiled);
	unprofiled_children_end(run, &registry->setup.intake->births);
	books_remove_run(run);
	program_run_each_process(process, run) program_run_free_process(process);
	walked_free(run);
	program_run_free(run);
}

void registry_init(struct registry *registry)
{
	const struct registry_setup *setup = &registry->setup;

	registry->drain.round = 1;
	registry->fallback = (struct backend_fallback){
	    .probe = setup->probe, .verbosity = setup->verbosity, .may_yield = setup->may_yield};
	setup->intake->find_runs = find_runs;
	setup->intake->context = registry;
}

void registry_fini(struct registry *registry)
{
	books_each_run(run, &registry->setup.intake->books) registry_remove_run(registry, run);
}

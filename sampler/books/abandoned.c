/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/abandoned.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"

#include <stdlib.h>

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

bool abandoned_is(const struct program_run *run, uint64_t now)
{
	if (!is_left(run, now))
		return false;
	if (!program_run_is_ready(run) && run->region->holder)
		return true; /* another user's process took the region and did not use it */
	return run->region->anonymous ? run->mapped.by_nobody : region_abandoned(run->region);
}

void abandoned_begin(struct program_run *run, pid_t mapped_by)
{
	run->mapped.by = mapped_by;
}

/* Of anonymous memory the kernel does not tell whether a process has it mapped. The process that had it at
 * the last look is asked first: mostly it still has, as a process that sleeps does for days. For all other
 * program runs together /proc is searched once. */
void abandoned_look(struct abandoned *abandoned, const struct books *books, uint64_t now)
{
	struct region_search *searches = NULL;
	size_t count = 0, capacity = 0;

	const uint64_t begin_ns = clock_now_ns();
	if (!throttle_allows(&abandoned->work, &look_rate, begin_ns))
		return;
	books_each_run(run, books)
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
	throttle_spend(&abandoned->work, clock_now_ns() - begin_ns);
}

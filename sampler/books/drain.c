/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/drain.h"

#include "pprof/text/clock.h"
#include "sampler/books/backend_fallback.h"
#include "sampler/books/walked.h"

enum { PATIENCE_NS = 100 * 1000000 }; /* wait for an entry whose writer was interrupted or has died */

void drain_note_frees(struct program_run *run)
{
	uint64_t head = atomic_load_explicit(&region_header(run->region)->frees_head, memory_order_acquire);

	if (head < run->frees.seen) /* only a hostile target goes back */
		run->frees.seen = head;
	if (head - run->frees.seen > REGION_FREES) {
		run->frees.lost += head - REGION_FREES - run->frees.seen;
		run->frees.seen = head - REGION_FREES;
	}
	run->frees.noted = head;
}

static void enter_free(struct program_run *run, const struct free_copy *gone)
{
	struct process *process = gone->place < REGION_PLACES ? run->places.at[gone->place] : NULL;

	if (process && !heap_freed(process->heap, gone))
		process->counters.frees_unknown++;
}

size_t drain_frees(struct program_run *run, uint64_t now_ns)
{
	size_t count = 0;

	while (run->frees.seen < run->frees.noted) {
		struct free_copy gone;
		bool read = region_read_free(run->region, run->frees.seen, &gone);

		/* Reads the head only if needed: each free in the target writes it, so its cache line moves
		 * to us and back. */
		if (!read &&
		    atomic_load(&region_header(run->region)->frees_head) - run->frees.seen <=
		        REGION_FREES / 2) {
			if (!run->frees.stuck_ns)
				run->frees.stuck_ns = now_ns;
			if (now_ns - run->frees.stuck_ns < PATIENCE_NS)
				break;
		}
		run->frees.stuck_ns = 0;
		run->frees.seen++;
		if (read)
			enter_free(run, &gone);
		else
			run->frees.lost++;
		count += read;
	}
	return count;
}

/* Before the rings are emptied, and after: what was asked for until then is in them no more. */
static void note_dumps(struct program_run *run)
{
	run->drain.dumps_noted =
	    atomic_load_explicit(&region_header(run->region)->dumps, memory_order_relaxed);
}

static void tell_dumps(const struct program_run *run)
{
	_Atomic uint64_t *read = &region_header(run->region)->dumps_read;

	if (atomic_load_explicit(read, memory_order_relaxed) != run->drain.dumps_noted)
		atomic_store_explicit(read, run->drain.dumps_noted, memory_order_relaxed);
}

/* Copied samples and frees alone. */
static void read_run(struct registry *registry, struct program_run *run, uint64_t now_ns, size_t *frees)
{
	const size_t copied =
	    intake_buffers(registry->setup.intake, run, registry->setup.probe->rings ? now_ns : UINT64_MAX);

	/* before the frees: blocks may have been allocated and freed since the last drain */
	registry->setup.intake->taken += walked_drain(run, registry->setup.intake->maps_follow);
	const size_t freed = drain_frees(run, now_ns);
	*frees += freed;
	if (copied + freed > registry->drain.most)
		registry->drain.most = copied + freed;
}

/* What is not done program run by program run. */
static size_t end_drain(struct registry *registry, uint64_t before, size_t frees, uint64_t now_ns)
{
	if (backend_fallback_tend(&registry->fallback, &registry->setup.intake->books,
	        registry->setup.intake->ring_lost, now_ns) &&
	    registry->setup.pool)
		region_pool_set_mode(registry->setup.pool, backend_fallback_mode(&registry->fallback));
	if (registry->setup.verbosity >= 0)
		memory_bound_say(registry->setup.intake->books.memory);
	/* Not the number of records: a system-wide uprobe event also reports all other processes' mappings.
	 */
	return registry->setup.intake->taken - before + frees;
}

size_t drain_all(struct registry *registry)
{
	const uint64_t before = registry->setup.intake->taken, now = clock_now_ns();

	books_each_run(run, &registry->setup.intake->books) if (program_run_is_ready(run))
	{
		drain_note_frees(run);
		note_dumps(run);
	}
	if (registry->setup.probe->rings)
		rings_drain(registry->setup.probe->rings, registry->setup.probe->regs_mask, intake_record,
		    registry->setup.intake, &registry->setup.intake->bad);
	size_t frees = 0;
	registry->drain.most = 0;
	books_each_run(run, &registry->setup.intake->books) if (program_run_is_ready(run))
	{
		tell_dumps(run);
		read_run(registry, run, now, &frees);
	}
	return end_drain(registry, before, frees, now);
}

size_t drain_some(struct registry *registry, uint64_t budget_ns)
{
	const uint64_t before = registry->setup.intake->taken, now = clock_now_ns();
	size_t frees = 0;
	bool in_time = true, left = false;

	if (registry->setup.probe->rings)
		return drain_all(registry);
	registry->drain.most = 0;
	books_each_run(run, &registry->setup.intake->books)
	{
		if (!program_run_is_ready(run) || run->drain.round == registry->drain.round)
			continue;
		if (!in_time) {
			left = true;
			break;
		}
		drain_note_frees(run);
		read_run(registry, run, clock_now_ns(), &frees);
		run->drain.round = registry->drain.round;
		in_time = clock_now_ns() - now < budget_ns;
	}
	registry->drain.round += !left;
	return end_drain(registry, before, frees, now);
}

void drain_run(struct registry *registry, struct program_run *run)
{
	size_t frees = 0;

	if (registry->setup.probe->rings) {
		drain_all(registry);
		return;
	}
	drain_note_frees(run);
	read_run(registry, run, clock_now_ns(), &frees);
}

void drain_ended(struct registry *registry)
{
	if (registry->setup.probe->rings) {
		drain_all(registry); /* once for all of them */
		return;
	}
	books_each_process (process, &registry->setup.intake->books)
		if (process->life.ended && !process->target.closed)
			drain_run(registry, process->run);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/free_log.h"

enum { PATIENCE_NS = 100 * 1000000 }; /* wait for an entry whose writer was interrupted or has died */

void free_log_note(struct program_run *run)
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

static void enter(struct program_run *run, const struct free_copy *gone)
{
	struct process *process = gone->place < REGION_PLACES ? run->places.at[gone->place] : NULL;

	if (process && !heap_freed(process->heap, gone))
		process->counters.frees_unknown++;
}

size_t free_log_drain(struct program_run *run, uint64_t now_ns)
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
			enter(run, &gone);
		else
			run->frees.lost++;
		count += read;
	}
	return count;
}

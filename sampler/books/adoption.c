/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/adoption.h"

#include "pprof/text/clock.h"
#include "sampler/books/registry.h"
#include "sampler/intake/live_scan.h"

#include <errno.h>

/* Enters a block that an earlier sampler had entered. If its stack is in the log, the block gets that
 * stack, and its allocation is counted there if the process made it. Otherwise it goes under the marker,
 * where heap_adopt() counts what is not known. */
static void adopt_block(struct process *process, const struct slot_copy *block, uint32_t slot,
    struct stack_log_reader *log, uint32_t marker)
{
	const bool inherited = block->flags & SLOT_INHERITED;
	struct heap_sample sample = {
	    .slot = slot,
	    .seq = block->seq,
	    .stack = stack_log_find(log, slot, block),
	    .tid = block->sample.tid,
	    .origin = inherited ? HEAP_ORIGIN_UNKNOWN : HEAP_ORIGIN_SELF,
	    .mapped = block->flags & SLOT_MMAP,
	    .size_bytes = block->sample.size_bytes,
	    .period_bytes = block->sample.period_bytes,
	};

	if (sample.stack != UINT32_MAX && !inherited && heap_add_older(process->heap, &sample) != -ENOMEM)
		return;
	if (sample.stack == UINT32_MAX || !inherited)
		sample.stack = marker;
	heap_inherit(process->heap, &sample); /* without memory for it: a lost stack */
}

void adoption_enter(struct process *process)
{
	struct live_scan_slots slots = live_scan_slots(process->run->region, process->place);
	struct slot_copy block;
	struct stack_log_reader log;
	uint32_t number;
	const uint32_t marker =
	    stacks_intern(process->target.stacks, NULL, 0, STACK_BEFORE_RESTART, process->target.maps);

	if (marker == UINT32_MAX)
		return;
	(void)stack_log_open(&log, &process->log, process->target.maps); /* without it no stack is known */
	while (live_scan_next(&slots, &number, &block)) {
		if (heap_site_of_slot(process->heap, number, &block) != HEAP_NO_SITE)
			continue;
		process_look_for_room(process);
		adopt_block(process, &block, number, &log, marker);
		process_weigh(process);
	}
	stack_log_close(&log);
	process->counters.before_restart = heap_adopt(process->heap, marker);
}

void adoption_begin(struct process *process)
{
	const struct region_place *place = region_place(process->run->region, process->place);
	/* The clock is read last: later samples are not in `before`. */
	const struct tally before = region_read_tally(&place->allocated);

	process->was_running = true;
	heap_begin(process->heap, before, clock_now_ns());
}

static void renew_log(struct process *process)
{
	struct live_scan_slots slots = live_scan_slots(process->run->region, process->place);
	struct slot_copy block;
	uint32_t number;

	stack_log_renew(&process->log);
	while (live_scan_next(&slots, &number, &block)) {
		uint32_t site = heap_site_of_slot(process->heap, number, &block);

		if (site != HEAP_NO_SITE)
			stack_log_block(
			    &process->log, number, block.seq, heap_site(process->heap, site)->key.stack);
	}
	for (size_t walked = 1; walked < process->walked.stack_room; walked++)
		if (process->walked.stack[walked])
			stack_log_walked(&process->log, (uint32_t)walked, process->walked.stack[walked] - 1);
}

void adoption_end(struct intake *intake, struct program_run *run)
{
	intake_buffers(intake, run, UINT64_MAX);
	program_run_each_process(process, run) if (process->was_running) adoption_enter(process);
	registry_settled(run);
	program_run_each_process(process, run) renew_log(process);
}

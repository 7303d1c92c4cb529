/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/process.h"

#include "sampler/intake/live_scan.h"
#include "sampler/linux/thread_facts.h"

#include <errno.h>
#include <string.h>

enum region_mapped process_presence(const struct process *process)
{
	return process->target.pidfd < 0 ? REGION_MAPPED_NO
	                                 : region_mapped_by(process->run->region, process->target.pid);
}

bool process_is_there(const struct process *process)
{
	return process_presence(process) != REGION_MAPPED_NO;
}

struct process *process_parent(struct process *process)
{
	const volatile struct region_place *place = region_place(process->run->region, process->place);
	const uint32_t word = place->parent;
	struct process *parent = word >= 1 && word <= REGION_PLACES && word - 1 != process->place
	    ? process->run->places.at[word - 1]
	    : NULL;

	return parent && parent->generation == place->parent_generation ? parent : NULL;
}

void process_look_for_room(struct process *process)
{
	const struct memory_bound *bound = process->run->memory;
	bool full = bound && !memory_bound_allows(bound, &process->share);

	stacks_set_full(process->target.stacks, full);
	heap_set_full(process->heap, full);
	process_look_for_maps_room(process);
}

/* The memory of the present maps is given up when they are read again. */
void process_look_for_maps_room(struct process *process)
{
	const struct memory_bound *bound = process->run->memory;
	const struct maps *maps = process->target.maps;
	const uint64_t has = maps ? maps_bytes(maps) : 0;
	const uint64_t held = process->share.held_bytes;

	process->target.maps_room_bytes =
	    bound ? memory_bound_room(bound, &process->share, has < held ? has : held) : 0;
	if (maps)
		maps_set_room(process->target.maps, process->target.maps_room_bytes);
}

void process_weigh(struct process *process)
{
	const struct process_walked *walked = &process->walked;

	if (process->run->memory)
		memory_share_note(&process->share, process->run->memory,
		    maps_bytes(process->target.maps) +
		        (process->target.past.maps ? maps_bytes(process->target.past.maps) : 0) +
		        stacks_bytes(process->target.stacks) + heap_bytes(process->heap) +
		        stack_log_bytes(&process->log, heap_segments(process->heap)) +
		        walked->seen_room * sizeof(*walked->seen) +
		        walked->stack_room * sizeof(*walked->stack) +
		        (walked->waiting ? sizeof(*walked->waiting) : 0));
}

void process_find_account(struct process *process)
{
	struct program_run *run = process->run;
	const struct process *parent = process_parent(process);
	uint64_t account = target_account(&process->target);

	if (!account && process->target.pidfd >= 0)
		account = target_account_of_user(thread_facts_read(process->target.pid).user);
	if (!account)
		account = process->share.account;
	if (!account && parent)
		account = parent->share.account;
	memory_share_belongs(&process->share, run->memory, account);
}

/* Only once the parent's own ancestors are known. The list of a longer chain ends early: the samples of
 * the processes beyond have no known origin. */
static void note_ancestors(struct process *process, const struct process *parent)
{
	if (process->ancestor_count || (parent->place && !parent->ancestor_count))
		return;
	process->ancestor_count = parent->ancestor_count;
	memcpy(process->ancestors, parent->ancestors, sizeof(process->ancestors));
	if (process->ancestor_count < PROCESS_ANCESTORS)
		process->ancestors[process->ancestor_count++] = parent->target.pid;
}

/* The origin in the child's books of what has `origin` in the parent's. */
static uint32_t origin_in_child(const struct process *process, const struct process *parent, uint32_t origin)
{
	if (origin == HEAP_ORIGIN_SELF)
		origin = parent->ancestor_count + 1;
	return origin <= process->ancestor_count ? origin : HEAP_ORIGIN_UNKNOWN;
}

/* Blocks whose stack is lost have no site that tells the origin. It is certain only in a child of the
 * program run's own process. */
pid_t process_origin_pid(const struct process *process, uint32_t origin)
{
	if (origin == HEAP_ORIGIN_SELF)
		return process->target.pid;
	if (origin == HEAP_ORIGIN_UNKNOWN && process->ancestor_count == 1)
		origin = 1;
	return origin <= process->ancestor_count ? process->ancestors[origin - 1] : 0;
}

/* site: in the parent's books. */
static void inherit_block(struct process *process, const struct process *parent, uint32_t number,
    const struct slot_copy *block, uint32_t site)
{
	const struct heap_key key = heap_site(parent->heap, site)->key;
	const char *thread = key.tid ? threads_name(parent->target.threads, key.tid) : NULL;

	if (thread)
		threads_call(process->target.threads, key.tid, thread);
	process_look_for_room(process);
	const struct heap_sample sample = {
	    .slot = number,
	    .seq = block->seq,
	    .stack = stacks_translate(parent->target.stacks, key.stack, process->target.stacks),
	    .tid = key.tid,
	    .backend = key.backend,
	    .origin = origin_in_child(process, parent, key.origin),
	    .mapped = block->flags & SLOT_MMAP,
	    .size_bytes = block->sample.size_bytes,
	    .period_bytes = block->sample.period_bytes,
	};
	if (sample.stack == UINT32_MAX || heap_inherit(process->heap, &sample) == -ENOMEM)
		process->counters.inherited_no_room++;
	else
		stack_log_block(&process->log, number, block->seq, sample.stack);
	process_weigh(process);
}

void process_inherit(struct process *process)
{
	struct live_scan_slots slots = live_scan_slots(process->run->region, process->place);
	const struct process *parent = process_parent(process);
	struct slot_copy block;
	uint32_t number;

	process->counters.inherited_no_room = 0;
	if (!parent)
		return;
	note_ancestors(process, parent);
	while (live_scan_next(&slots, &number, &block)) {
		if (!(block.flags & SLOT_INHERITED) || block.origin_place != parent->place ||
		    heap_site_of(process->heap, number, block.seq, 0) != HEAP_NO_SITE)
			continue;
		uint32_t site =
		    heap_site_of(parent->heap, block.sample.slot, block.sample.seq, block.sample.stack);
		if (site != HEAP_NO_SITE)
			inherit_block(process, parent, number, &block, site);
	}
}

uint64_t process_samples(const struct process *process)
{
	return region_read_tally(&region_place(process->run->region, process->place)->allocated).samples;
}

uint64_t process_dumps_asked(const struct process *process)
{
	return atomic_load_explicit(
	    &region_place(process->run->region, process->place)->triggered, memory_order_relaxed);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/resident_watch.h"

#include "pprof/text/clock.h"
#include "sampler/inject/preload_library.h"
#include "sampler/intake/place_slots.h"

enum {
	YOUNGEST_NS = 50 * 1000000, /* most programs of a shell script have ended by then */
	OFTEN_NS = 1000 * 1000000,
	COST_SHARE = 200,
	/* For a daemon, whose processes are many and live long: a quarter of that, and no reading within the
	 * first second. */
	PLANNED_SHARE = 4,
	PLANNED_YOUNGEST_NS = 1000 * 1000000,
	READING_MAX_NS = 100 * 1000000,
	LARGE_BYTES = 16 << 20,
	LARGE_PERIODS = 8, /* so much malloc is without a sample with a chance of exp(-8) */
};

/* ---- the blocks */

struct scan {
	struct resident_reading *reading;
	const struct region *region;
	uint32_t place;
};

static void add_block(
    struct resident_reading *reading, const struct slot_copy *block, struct resident_reader *reader)
{
	struct weight weight = region_weight(block);
	double bytes = (double)weight.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);

	if (block->flags & SLOT_MMAP) {
		reading->mapped_bytes += bytes;
		reading->mapped_variance += weight.bytes_variance;
		return;
	}
	reading->heap_bytes += bytes;
	reading->heap_variance += weight.bytes_variance;
	if (reader)
		resident_block(reader, block->address, block->sample.size_bytes, bytes);
}

/* reader: NULL if the mappings were not read */
static void each_block(void *context, struct resident_reader *reader)
{
	const struct scan *scan = context;
	struct place_slots slots = place_slots_begin(scan->region, scan->place);
	struct slot_copy block;
	uint32_t number;

	while (place_slots_next(&slots, &number, &block))
		add_block(scan->reading, &block, reader);
}

/* ---- a reading */

/* The process may have executed another program: it is the same only if it has the region mapped. */
static int read_parts(struct resident_reading *reading, const struct process *process)
{
	struct region *region = process->run->region;
	const struct region_header *header = region_header(region);
	struct scan scan = {reading, region, process->place};
	const struct resident_facts facts = {
	    .library = process->run->origin.attached_pid ? ATTACH_LIBRARY_MAPPED : PRELOAD_LIBRARY_NAME,
	    .region_ino = region->ino,
	    .own_start = header->own_start,
	    .own_end = header->own_end,
	    .grown_start = header->grown_start,
	    .grown_end = header->grown_end,
	    .each_block = each_block,
	    .context = &scan,
	};
	int error = resident_read(&reading->parts, process->target.pid, &facts, READING_MAX_NS);

	if (!error && reading->parts.counters)
		each_block(&scan, NULL);
	return error;
}

/* Memory that a forked process shares may be its parent's. */
bool resident_watch_is_large(
    const struct resident_watch *watch, const struct process *process, uint64_t period_bytes)
{
	const struct resident_reading *reading = &watch->largest;
	const struct resident *parts = &reading->parts;
	double bytes = (double)parts->bytes[RESIDENT_ANONYMOUS] -
	    (parts->counters ? reading->heap_bytes : 0) - (reading->with_mmap ? reading->mapped_bytes : 0);

	if (process->place != 0 && bytes > (double)parts->alone_bytes)
		bytes = (double)parts->alone_bytes;
	if (process->run->period.bytes)
		period_bytes = process->run->period.bytes;
	return bytes >= LARGE_BYTES && bytes >= LARGE_PERIODS * (double)period_bytes;
}

void resident_watch_read(struct resident_watch *watch, struct process *process)
{
	struct resident_reading reading = {
	    .time_ns = clock_now_ns(),
	    .unix_ns = clock_unix_ns(),
	    .with_mmap = region_header(process->run->region)->record_mmap == 1,
	    .older = process->run->origin.attached_pid != 0,
	};
	uint64_t began_ns = clock_thread_cpu_ns();

	if (!process->target.readable || process->target.closed)
		return;
	watch->tried_ns = reading.time_ns;
	char name[PROCESS_NAME_BYTES];
	const bool named = target_read_full_name(&process->target, name);
	int error = read_parts(&reading, process);
	watch->cost_ns = clock_thread_cpu_ns() - began_ns;
	if (error)
		return;
	/* The mapping was seen after the name was read, so the name is of the same program. */
	if (named)
		target_set_full_name(&process->target, name);
	watch->newest = reading;
	if (reading.parts.total_bytes >= watch->largest.parts.total_bytes)
		watch->largest = reading;
}

const struct resident_reading *resident_watch_shown(const struct resident_watch *watch)
{
	return watch->largest.parts.total_bytes / 8 * 7 > watch->newest.parts.total_bytes ? &watch->largest
	                                                                                  : &watch->newest;
}

/* ---- when */

uint64_t resident_watch_wait_ns(uint64_t age_ns, uint64_t cost_ns, size_t processes)
{
	uint64_t wait_ns = age_ns / 8 < OFTEN_NS ? age_ns / 8 : OFTEN_NS;
	uint64_t share_ns = cost_ns * COST_SHARE * (processes ? processes : 1);

	wait_ns = wait_ns > YOUNGEST_NS ? wait_ns : YOUNGEST_NS;
	return wait_ns > share_ns ? wait_ns : share_ns;
}

void resident_watch_look(
    struct resident_watch *watch, struct process *process, uint64_t now_ns, size_t processes)
{
	uint64_t start_ns = process->target.start_ns;
	uint64_t before_ns = watch->tried_ns ? watch->tried_ns : start_ns;
	uint64_t age_ns = before_ns > start_ns ? before_ns - start_ns : 0;

	if (process->target.plan) {
		processes *= PLANNED_SHARE;
		if (now_ns < start_ns + PLANNED_YOUNGEST_NS)
			return;
	}
	if (now_ns >= before_ns + resident_watch_wait_ns(age_ns, watch->cost_ns, processes))
		resident_watch_read(watch, process);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/resident_watch.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "sampler/inject/preload_library.h"
#include "sampler/intake/live_scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <time.h>

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
	struct live_scan_slots slots = live_scan_slots(scan->region, scan->place);
	struct slot_copy block;
	uint32_t number;

	while (live_scan_next(&slots, &number, &block))
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

/* A part of the resident memory that gets a line in the summary; smaller ones do not. */
#define SMALLEST_PART 0.01

/* ---- rows */

struct rows {
	char (*text)[RESIDENT_TEXT_BYTES];
	size_t count;
	double least_bytes; /* smaller ones are left out */
};

__attribute__((format(printf, 3, 4))) static void add_row(
    struct rows *rows, double bytes, const char *format, ...)
{
	char amount[AMOUNT_BYTES], name[RESIDENT_TEXT_BYTES];
	va_list arguments;

	if (fabs(bytes) < rows->least_bytes)
		return;
	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	snprintf(rows->text[rows->count++], RESIDENT_TEXT_BYTES, "%10s  %.140s", amount_bytes(bytes, amount),
	    name);
}

/* The heap in use, and the slack: what the allocator's mappings have beyond it. The slack may be negative,
 * because all bytes of a block are in use but only its touched pages are resident. Within three standard
 * errors it may be chance. */
static void add_heap(struct rows *rows, const struct resident_reading *reading)
{
	char text[AMOUNT_BYTES];
	bool counters = reading->parts.counters;
	double bytes = (double)reading->parts.bytes[counters ? RESIDENT_ANONYMOUS : RESIDENT_HEAP];
	double error = sqrt(reading->heap_variance), slack = bytes - reading->heap_bytes;
	char name[96];

	snprintf(name, sizeof(name), "allocator's slack%s%s",
	    reading->older ? ", blocks from before heaptap attached" : "",
	    counters ? ", other anonymous memory and stacks" : "");
	if (reading->heap_bytes == 0) {
		if (bytes > 0)
			add_row(rows, bytes, "%s; no sampled byte is in use", name);
		return;
	}
	amount_bytes(error, text);
	const double least_bytes = rows->least_bytes;
	rows->least_bytes = 0;
	add_row(rows, reading->heap_bytes, "heap in use, +- %s", text);
	rows->least_bytes = least_bytes;
	if (slack >= -3 * error)
		add_row(rows, slack, "%s, +- %s", name, text);
	else
		add_row(rows, slack, "in use, but not resident: never touched, or swapped out (swap: %s)",
		    amount_bytes((double)reading->parts.swap_bytes, text));
}

static void add_anonymous(struct rows *rows, const struct resident_reading *reading, bool sampled)
{
	char mapped[AMOUNT_BYTES], error[AMOUNT_BYTES];
	double bytes = (double)reading->parts.bytes[RESIDENT_ANONYMOUS];

	if (bytes == 0)
		return;
	if (!sampled)
		add_row(rows, bytes, "other anonymous memory: the allocator's, and the program's own");
	else if (reading->with_mmap)
		add_row(rows, bytes,
		    "other anonymous memory (mapped by the program, touched or not: %s +- %s)",
		    amount_bytes(reading->mapped_bytes, mapped),
		    amount_bytes(sqrt(reading->mapped_variance), error));
	else
		add_row(rows, bytes, "not malloc, by the samples%s: pools, JS or Java heap, mmap",
		    reading->older ? " since heaptap attached" : "");
}

static void add_kind(struct rows *rows, const struct resident_reading *reading, enum resident_kind kind)
{
	double bytes = (double)reading->parts.bytes[kind];

	if (bytes == 0)
		return;
	if (kind == RESIDENT_STACKS)
		add_row(rows, bytes, "stacks of %" PRIu64 " thread%s", reading->parts.threads,
		    reading->parts.threads == 1 ? "" : "s");
	else if (kind == RESIDENT_FILES && reading->parts.counters)
		add_row(rows, bytes, "files: program, libraries and others");
	else
		add_row(rows, bytes, "%s", resident_kind_name(kind));
}

/* Leaves out parts below least_bytes, but never the heap. */
static size_t make_rows(const struct resident_reading *reading, bool sampled, double least_bytes,
    char text[RESIDENT_TEXT_ROWS][RESIDENT_TEXT_BYTES])
{
	struct rows rows = {.text = text, .least_bytes = least_bytes};

	if (sampled)
		add_heap(&rows, reading);
	else if (reading->parts.bytes[RESIDENT_HEAP])
		add_row(&rows, (double)reading->parts.bytes[RESIDENT_HEAP], "[heap]");
	if (!sampled || !reading->parts.counters)
		add_anonymous(&rows, reading, sampled);
	for (enum resident_kind kind = RESIDENT_CODE; kind < RESIDENT_KINDS; kind++)
		add_kind(&rows, reading, kind);
	return rows.count;
}

size_t resident_text_rows(
    const struct resident_reading *reading, bool sampled, char text[RESIDENT_TEXT_ROWS][RESIDENT_TEXT_BYTES])
{
	return make_rows(reading, sampled, 0, text);
}

/* ---- the end summary */

void resident_text_print(FILE *out, const struct resident_watch *watch, uint64_t end_ns)
{
	char rows[RESIDENT_TEXT_ROWS][RESIDENT_TEXT_BYTES], amount[AMOUNT_BYTES];
	/* Not the newest: a process frees most of its memory before it ends. */
	const struct resident_reading *shown = &watch->largest;

	if (!shown->time_ns)
		return;
	uint64_t before_ns = end_ns > shown->time_ns ? end_ns - shown->time_ns : 0;
	fprintf(out, "  resident %s%s, %.1f s before the end%s:\n",
	    amount_bytes((double)shown->parts.total_bytes, amount),
	    shown->time_ns < watch->newest.time_ns ? " at its largest" : "",
	    (double)before_ns / CLOCK_NS_PER_S,
	    shown->parts.counters ? " (the kernel's counters; it is too large to look at each mapping)" : "");
	size_t count = make_rows(shown, true, (double)shown->parts.total_bytes * SMALLEST_PART, rows);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "    %s\n", rows[i]);
}

/* ---- the comment */

void resident_text_comment(const struct resident_reading *reading, char *text, size_t text_bytes)
{
	const struct resident *parts = &reading->parts;
	uint64_t anonymous = parts->counters ? RESIDENT_ANONYMOUS : RESIDENT_HEAP;
	/* a hostile target may count more bytes than there are addresses */
	uint64_t heap =
	    reading->heap_bytes < 0x1p62 ? (uint64_t)llround(reading->heap_bytes) : UINT64_C(1) << 62;
	time_t seconds = (time_t)(reading->unix_ns / CLOCK_NS_PER_S);
	struct tm tm;
	char when[32] = "";

	if (gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	int at = snprintf(text, text_bytes,
	    "rss: total=%" PRIu64 " heap=%" PRIu64 " heap_error=%.0f slack=%" PRId64, parts->total_bytes,
	    heap, sqrt(reading->heap_variance), (int64_t)(parts->bytes[anonymous] - heap));
	for (enum resident_kind kind = RESIDENT_ANONYMOUS; kind < RESIDENT_KINDS && at < (int)text_bytes;
	     kind++)
		if (kind != anonymous)
			at += snprintf(text + at, text_bytes - (size_t)at, " %s=%" PRIu64,
			    resident_kind_word(kind), parts->bytes[kind]);
	if (at < (int)text_bytes && reading->with_mmap)
		at += snprintf(text + at, text_bytes - (size_t)at, " mmap=%.0f mmap_error=%.0f",
		    reading->mapped_bytes, sqrt(reading->mapped_variance));
	if (at < (int)text_bytes)
		snprintf(text + at, text_bytes - (size_t)at,
		    " swap=%" PRIu64 " threads=%" PRIu64 " (bytes; %s, %s.%03dZ)", parts->swap_bytes,
		    parts->threads, parts->counters ? "the kernel's counters" : "smaps", when,
		    (int)(reading->unix_ns / CLOCK_NS_PER_MS % 1000));
}

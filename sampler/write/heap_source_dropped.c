/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/heap_source.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/intake/live_scan.h"
#include "sampler/write/end_phrase.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const drops[] = {
    [SNAPSHOT_DROP_FEW] = "of few samples",
    [SNAPSHOT_DROP_CROWD] = "because more ended than could be written",
    [SNAPSHOT_DROP_PAUSED] = "because everything was off when they ended",
    [SNAPSHOT_DROP_USER] = "because processes of other users leave 1,000 and one more every 10 s",
};

struct tally heap_source_dropped_in_use(const struct process *process)
{
	struct live_scan scan;
	struct tally sum = {0};

	/* At place 0 nothing is inherited, so the count will do: reading slots that were never used costs
	 * memory. */
	if (process->place == 0)
		return region_read_tally(&region_place(process->run->region, 0)->live);
	if (live_scan_take(&scan, process->run->region, process->place) != 0)
		return sum;
	for (size_t i = 0; i < scan.count; i++)
		if (scan.blocks[i].live && !(scan.blocks[i].slot.flags & SLOT_INHERITED))
			tally_count(&sum, region_weight(&scan.blocks[i].slot));
	live_scan_fini(&scan);
	return sum;
}

/* Logged at most every ten seconds: there are many such processes, or there would be none. */
static void log_dropped(
    struct heap_source_dropped *dropped, const struct target *target, enum snapshot_drop why)
{
	const uint64_t now_ns = clock_now_ns();
	char pid[END_PHRASE_PID_BYTES];

	dropped->unsaid++;
	if (dropped->said_ns && now_ns - dropped->said_ns < UINT64_C(10) * CLOCK_NS_PER_S)
		return;
	log_line("%" PRIu64 " processes left no profile, %s (the last: %s, %s)", dropped->unsaid, drops[why],
	    target->title, end_phrase_pid(target->pid, pid));
	dropped->said_ns = now_ns;
	dropped->unsaid = 0;
}

void heap_source_dropped_add(struct heap_source_dropped dropped[SNAPSHOT_DROPS],
    const struct process *process, enum snapshot_drop why, struct tally at_end)
{
	struct tally allocated =
	    region_read_tally(&region_place(process->run->region, process->place)->allocated);

	tally_add(&dropped[why].allocated, &allocated);
	dropped[why].processes++;
	dropped[why].at_end_bytes += (double)at_end.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);
	if (why != SNAPSHOT_DROP_FEW)
		log_dropped(&dropped[why], &process->target, why);
}

bool heap_source_dropped_describe(const struct heap_source_dropped dropped[SNAPSHOT_DROPS],
    enum snapshot_drop why, char *text, size_t text_bytes)
{
	const struct heap_source_dropped *d = &dropped[why];
	const double bytes = (double)d->allocated.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);

	text[0] = '\0';
	if (why != SNAPSHOT_DROP_FEW && d->processes)
		snprintf(text, text_bytes,
		    "%" PRIu64 " processes left no profile, %s: %" PRIu64 " samples, %.0f bytes allocated",
		    d->processes, drops[why], d->allocated.samples, bytes);
	else if (d->allocated.samples)
		snprintf(text, text_bytes,
		    "%" PRIu64 " processes %s left no profile: %" PRIu64
		    " samples, %.0f bytes allocated, %.0f in use at their ends",
		    d->processes, drops[why], d->allocated.samples, bytes, d->at_end_bytes);
	return text[0];
}

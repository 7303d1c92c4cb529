/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/summary.h"

#include "pprof/model/estimate.h"
#include "pprof/text/amount.h"
#include "sampler/write/resident_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* COMMAND and processes of this size get lines about what their resident memory consists of. */
enum { RESIDENT_SAID_BYTES = 16 << 20 };

/* ---- the numbers of the row */

/* As the profile has it. */
static double rounded(uint64_t value, int shift)
{
	return (double)((value >> shift) + (value >> (shift - 1) & 1));
}

/* From the sums of each row, as heaptap report computes it from the profile: both must show the same error.
 * */
static struct summary_estimate estimate_view(const struct heap_view *view, uint64_t period_bytes)
{
	struct summary_estimate sum = {
	    .samples = view->inuse.samples, .bytes = view->inuse.bytes, .objects = view->inuse.objects};

	for (size_t i = 0; i < view->count; i++) {
		const struct tally *inuse = &view->rows[i].inuse;
		struct estimate row = estimate_of(rounded(inuse->bytes_q8, WEIGHT_BYTES_SHIFT),
		    rounded(inuse->objects_q16, WEIGHT_OBJECTS_SHIFT), 0, (double)period_bytes);

		sum.bytes_variance += row.bytes_variance;
		sum.objects_variance += row.objects_variance;
	}
	return sum;
}

/* Does chance alone decide what was not sampled? No, if samples had no slot, or if sampling was paused. */
static bool is_certain(const struct process *process, const struct region_place *place)
{
	return !region_read_tally(&place->lost[REGION_LOSS_TABLE_FULL]).samples &&
	    !process->counters.before_restart && !atomic_load(&place->paused) &&
	    !atomic_load(&place->paused_ns) &&
	    /* it may call malloc by an address that it has found before */
	    !process->run->origin.attached_pid;
}

static char *copy_of(const char *path)
{
	return path && *path ? strdup(path) : NULL;
}

/* ---- the block */

static void print_estimate(FILE *out, const char *when, const struct summary_estimate *estimate)
{
	char value[AMOUNT_BYTES], error[AMOUNT_BYTES];

	if (estimate->bytes_variance > 0)
		fprintf(out, "  %-7s %s +- %s in %.0f +- %.0f objects\n", when,
		    amount_bytes(estimate->bytes, value), amount_bytes(sqrt(estimate->bytes_variance), error),
		    estimate->objects, sqrt(estimate->objects_variance));
	else /* each block was recorded */
		fprintf(out, "  %-7s %s in %.0f objects\n", when, amount_bytes(estimate->bytes, value),
		    estimate->objects);
}

/* " (less than about 1.5 MiB, 95 %)"; "" if nothing can be said. */
static const char *bound_text(const struct summary_row *row, const char *what, char *text, size_t text_bytes)
{
	char amount[AMOUNT_BYTES];
	double bound = summary_bound_bytes(row->period_bytes);

	text[0] = '\0';
	if (row->stripped)
		snprintf(text, text_bytes, " (it is stripped: an allocator inside may be hidden)");
	else if (bound > 0 && row->certain)
		snprintf(
		    text, text_bytes, " (less than about %s%s, 95 %%)", amount_bytes(bound, amount), what);
	return text;
}

static void print_at_end(FILE *out, const struct summary_row *row)
{
	char bound[96];
	bool exact = row->period_bytes <= 1 && row->certain;

	if (row->at_end.samples)
		print_estimate(out, "at end", &row->at_end);
	else if (row->samples)
		fprintf(out, "  at end  nothing%s in use%s\n", exact ? "" : " sampled",
		    bound_text(row, "", bound, sizeof(bound)));
	else
		fprintf(out, "  %s%s\n", exact ? "nothing was allocated" : "no allocation was sampled",
		    bound_text(row, " was allocated", bound, sizeof(bound)));
}

static void print_samples(FILE *out, const struct summary_row *row, const struct heap_snapshot *snapshot)
{
	const struct region_place *place =
	    region_place(snapshot->process->run->region, snapshot->process->place);
	const struct process_counters *counters = &snapshot->process->counters;

	fprintf(
	    out, "  samples %" PRIu64 " taken, %" PRIu64 " without a stack", row->samples, row->stackless);
	if (snapshot->view.lost_inherited)
		fprintf(out, "; inherited without a stack: %" PRIu64, snapshot->view.lost_inherited);
	if (counters->before_restart)
		fprintf(out, "; sampled before restart: %" PRIu64, counters->before_restart);
	for (uint32_t i = 0; i < REGION_LOSS_COUNT; i++) {
		struct tally tally = region_read_tally(&place->lost[i]);

		if (tally.samples)
			fprintf(out, "; %s: %" PRIu64, region_loss_name((enum region_loss)i), tally.samples);
	}
	if (snapshot->dumps_missing)
		fprintf(out, "; %s: %" PRIu64, heap_snapshot_why_missing(snapshot), snapshot->dumps_missing);
	for (uint32_t i = 0; i < UNWIND_COUNTS; i++)
		if (i != UNWIND_COMPLETE && counters->outcome[i])
			fprintf(out, "; %s: %" PRIu64, unwind_outcome_name((enum unwind_outcome)i),
			    counters->outcome[i]);
	if (counters->no_room + counters->inherited_no_room)
		fprintf(out, "; no memory for: %" PRIu64, counters->no_room + counters->inherited_no_room);
	putc('\n', out);
}

static void summary_print(FILE *out, const struct summary_row *row, const struct heap_snapshot *snapshot)
{
	char line[UNSEEN_LINE_BYTES], pid[PROCESS_END_PID_BYTES];

	fprintf(out, "%s (%s) %s\n", row->title, process_end_pid(row->pid, pid), row->end);
	if (row->has_peak)
		print_estimate(out, "peak", &row->peak);
	print_at_end(out, row);
	print_samples(out, row, snapshot);
	for (size_t i = 0; i < row->unseen.count; i++)
		fprintf(out, "  %s\n", unseen_line(&row->unseen.texts[i], line));
	if (row->placeless)
		fprintf(out, "  not profiled: %" PRIu64 " forked children without a free place\n",
		    row->placeless);
	if (row->not_cut_off)
		fprintf(out,
		    "  not profiled since they changed their user id: %" PRIu64
		    " forked children that could not be cut off from the stacks of others\n",
		    row->not_cut_off);
	if (row->not_afforded)
		fprintf(out,
		    "  not profiled since they set themselves a limit of memory: %" PRIu64
		    " processes, whose limit leaves no room for heaptap's\n",
		    row->not_afforded);
}

/* ---- the row, with its block */

void summary_row_make(
    struct summary_row *row, const struct heap_snapshot *snapshot, const char *end, int error)
{
	const struct process *process = snapshot->process;
	const struct target *target = &process->target;
	const struct region_place *place = region_place(process->run->region, process->place);

	*row = (struct summary_row){
	    .pid = target->pid,
	    .command = target->command && (target->end != TARGET_EXEC || target->unprofiled[0]),
	    .alarm = process_end_alarm(target),
	    .period_bytes = snapshot->period_bytes,
	    .has_peak = snapshot->peak.inuse.samples > 0,
	    .certain = is_certain(process, place),
	    .unseen = snapshot->unseen.texts,
	    .hidden = unseen_may_hide(&snapshot->unseen.facts, summary_bound_bytes(snapshot->period_bytes)),
	    .peak = estimate_view(&snapshot->peak, snapshot->period_bytes),
	    .at_end = estimate_view(&snapshot->view, snapshot->period_bytes),
	    .samples = snapshot->view.allocated.samples,
	    .stackless = snapshot->view.lost_alloc.samples + process->counters.before_restart,
	    .path = error ? NULL : copy_of(snapshot->path),
	    .peak_path = error || !snapshot->peak.inuse.samples ? NULL : copy_of(snapshot->peak_path),
	};
	row->certain = row->certain && !row->hidden;
	row->stripped = row->hidden && snapshot->unseen.facts.stripped &&
	    !snapshot->unseen.facts.allocator[0] && !snapshot->unseen.facts.own_malloc &&
	    !snapshot->unseen.facts.runtime.kind;
	summary_title(row->title, target->title);
	snprintf(row->full_name, sizeof(row->full_name), "%s", target->full_name);
	snprintf(row->end, sizeof(row->end), "%s", end);
	if (process->place == 0) {
		row->placeless = region_placeless(process->run->region);
		row->not_cut_off = region_not_cut_off(process->run->region);
		row->not_afforded = region_not_afforded(process->run->region);
	}
	size_t bytes;
	FILE *out = open_memstream(&row->block, &bytes);
	if (!out)
		return;
	summary_print(out, row, snapshot);
	fclose(out);
	if (!target->command && snapshot->resident.largest.parts.total_bytes < RESIDENT_SAID_BYTES)
		return;
	out = open_memstream(&row->resident, &bytes);
	if (!out)
		return;
	row->resident_bytes = snapshot->resident.largest.parts.total_bytes;
	resident_text_print(out, &snapshot->resident, snapshot->scan_ns);
	fclose(out);
}

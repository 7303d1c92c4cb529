/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/summary_list.h"

#include "pprof/model/estimate.h"
#include "pprof/text/amount.h"
#include "pprof/text/utf8.h"
#include "sampler/write/heap_snapshot.h"
#include "sampler/write/resident_watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SHARE_AT_END = 10, /* if less than this part of the peak is left, the exit profile says little */
	RESIDENT_SAID_BYTES =
	    16 << 20, /* a process of this size, as COMMAND, gets lines about its resident memory */
};

void summary_title(char copy[TARGET_TITLE_BYTES], const char title[TARGET_TITLE_BYTES])
{
	memcpy(copy, title, TARGET_TITLE_BYTES);
	utf8_disarm(copy, strnlen(copy, TARGET_TITLE_BYTES));
}

void summary_row_fini(struct summary_row *row)
{
	free(row->path);
	free(row->peak_path);
	free(row->block);
	free(row->resident);
	row->path = row->peak_path = row->block = row->resident = NULL;
}

double summary_row_bytes(const struct summary_row *row)
{
	return row->has_peak && row->peak.bytes > row->at_end.bytes ? row->peak.bytes : row->at_end.bytes;
}

const char *summary_row_path(const struct summary_row *row)
{
	bool little = row->has_peak && row->at_end.bytes < row->peak.bytes / SHARE_AT_END;

	return row->peak_path && (little || !row->path) ? row->peak_path : row->path;
}

double summary_bound_bytes(uint64_t period_bytes)
{
	return period_bytes > 1 ? -log(0.05) * (double)period_bytes : 0;
}

/* ---- rows */

static void add_to_rest(struct summary_list *list, struct summary_row *row)
{
	struct summary_rest *rest = &list->rest;

	rest->processes++;
	rest->samples += row->samples;
	rest->peak_bytes += summary_row_bytes(row);
	rest->at_end_bytes += row->at_end.bytes;
	rest->at_end_samples += row->at_end.samples;
	rest->uncertain = rest->uncertain || !row->certain;
	if (rest->period_bytes < row->period_bytes)
		rest->period_bytes = row->period_bytes;
	summary_row_fini(row);
}

/* Keeps the largest rows. */
static void add_row(struct summary_list *list, struct summary_row *row)
{
	double bytes = summary_row_bytes(row);
	size_t at = list->row_count;

	while (at > 0 && summary_row_bytes(&list->rows[at - 1]) < bytes)
		at--;
	if (at == SUMMARY_ROWS) {
		add_to_rest(list, row);
		return;
	}
	if (list->row_count == SUMMARY_ROWS)
		add_to_rest(list, &list->rows[--list->row_count]);
	memmove(&list->rows[at + 1], &list->rows[at], (list->row_count - at) * sizeof(list->rows[0]));
	list->rows[at] = *row;
	list->row_count++;
}

static bool is_worse(const struct summary_alarm *a, const struct summary_alarm *b)
{
	return a->alarm != b->alarm ? a->alarm > b->alarm : a->bytes > b->bytes;
}

static void add_alarm(struct summary_list *list, const struct summary_alarm *alarm)
{
	size_t at = list->alarm_count;

	list->alarms_all++;
	while (at > 0 && is_worse(alarm, &list->alarms[at - 1]))
		at--;
	if (at == SUMMARY_ALARMS)
		return;
	if (list->alarm_count == SUMMARY_ALARMS)
		list->alarm_count--;
	memmove(&list->alarms[at + 1], &list->alarms[at], (list->alarm_count - at) * sizeof(list->alarms[0]));
	list->alarms[at] = *alarm;
	list->alarm_count++;
}

void summary_list_add(struct summary_list *list, struct summary_row *row)
{
	bool command = row->command && !list->has_command; /* the first of several that were attached to */

	list->processes++;
	list->samples += row->samples;
	list->stackless += row->stackless;
	list->placeless += row->placeless;
	list->not_cut_off += row->not_cut_off;
	list->not_afforded += row->not_afforded;
	if (row->unseen.count && (!list->unseen.what[0] || row->unseen.texts[0].bytes > list->unseen.bytes)) {
		list->unseen = row->unseen.texts[0];
		memcpy(list->unseen_title, row->title, sizeof(list->unseen_title));
	}
	if (row->alarm != END_PHRASE_QUIET && !command) {
		struct summary_alarm alarm = {.pid = row->pid,
		    .alarm = row->alarm,
		    .bytes = summary_row_bytes(row),
		    .samples = row->samples};

		memcpy(alarm.title, row->title, sizeof(alarm.title));
		memcpy(alarm.end, row->end, sizeof(alarm.end));
		add_alarm(list, &alarm);
	}
	if (command) {
		list->command = *row;
		list->has_command = true;
	} else {
		add_row(list, row);
	}
	*row = (struct summary_row){.pid = 0};
}

void summary_list_omit(struct summary_list *list, const struct target *target, struct tally allocated,
    struct tally at_end, double peak_bytes)
{
	struct summary_omitted *omitted = &list->omitted;

	omitted->processes++;
	omitted->allocated.samples += allocated.samples;
	omitted->allocated.bytes_q8 += allocated.bytes_q8;
	omitted->allocated.objects_q16 += allocated.objects_q16;
	omitted->at_end_bytes += (double)at_end.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);
	struct summary_alarm alarm = {.pid = target->pid,
	    .alarm = end_phrase_alarm(target),
	    .bytes = peak_bytes,
	    .samples = allocated.samples};
	if (alarm.alarm == END_PHRASE_QUIET)
		return;
	summary_title(alarm.title, target->title);
	end_phrase_plain(target, alarm.end, sizeof(alarm.end));
	add_alarm(list, &alarm);
}

void summary_list_clear(struct summary_list *list)
{
	for (size_t i = 0; i < list->row_count; i++)
		summary_row_fini(&list->rows[i]);
	summary_row_fini(&list->command);
	*list = (struct summary_list){.row_count = 0};
}

/* ---- the numbers of a row */

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

static void print_block(FILE *out, const struct summary_row *row, const struct heap_snapshot *snapshot)
{
	char line[UNSEEN_LINE_BYTES], pid[END_PHRASE_PID_BYTES];

	fprintf(out, "%s (%s) %s\n", row->title, end_phrase_pid(row->pid, pid), row->end);
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

void summary_list_make_row(
    struct summary_row *row, const struct heap_snapshot *snapshot, const char *end, int error)
{
	const struct process *process = snapshot->process;
	const struct target *target = &process->target;
	const struct region_place *place = region_place(process->run->region, process->place);

	*row = (struct summary_row){
	    .pid = target->pid,
	    .command = target->command && (target->end != TARGET_EXEC || target->unprofiled[0]),
	    .alarm = end_phrase_alarm(target),
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
	print_block(out, row, snapshot);
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

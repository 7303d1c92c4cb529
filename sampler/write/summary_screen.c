/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/summary_screen.h"

#include "pprof/text/amount.h"
#include "sampler/write/summary_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
	SAMPLES_MANY = 30, /* heaptap report advises the same below this number */
	ERROR_SHARE = 10,  /* few samples of large blocks are enough if the error is a tenth of the bytes */
	PERIOD_SHARE = 32, /* advises 16K after the default of 512K */
};

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "es";
}

/* ---- what went wrong */

static void print_alarms(FILE *out, const struct summary_list *list)
{
	char amount[AMOUNT_BYTES], pid[PROCESS_END_PID_BYTES];

	for (size_t i = 0; i < list->alarm_count; i++) {
		const struct summary_alarm *alarm = &list->alarms[i];

		fprintf(out, "%s (%s) %s", alarm->title, process_end_pid(alarm->pid, pid), alarm->end);
		if (alarm->samples)
			fprintf(out, "; %s at its largest\n", amount_bytes(alarm->bytes, amount));
		else
			fputs("; nothing of it was sampled\n", out);
	}
	if (list->alarms_all > list->alarm_count)
		fprintf(out, "and %" PRIu64 " more were ended by signals\n",
		    list->alarms_all - list->alarm_count);
}

/* For several processes: the block of a single one has these lines. */
static void print_unseen(FILE *out, const struct summary_list *list)
{
	if (list->placeless)
		fprintf(
		    out, "not profiled: %" PRIu64 " forked children without a free place\n", list->placeless);
	if (list->not_cut_off)
		fprintf(out,
		    "not profiled since they changed their user id: %" PRIu64
		    " forked children that could not be cut off from the stacks of others\n",
		    list->not_cut_off);
	if (list->not_afforded)
		fprintf(out,
		    "not profiled since they set themselves a limit of memory: %" PRIu64
		    " processes, whose limit leaves no room for heaptap's\n",
		    list->not_afforded);
	char line[UNSEEN_LINE_BYTES];
	if (list->unseen.what[0])
		fprintf(out, "%s: %s\n", list->unseen_title, unseen_line(&list->unseen, line));
}

/* ---- what is left out */

static void print_omitted(FILE *out, const struct summary_list *list, const struct summary_facts *facts)
{
	const struct summary_omitted *omitted = &list->omitted;
	double bytes = (double)omitted->allocated.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);
	char allocated[AMOUNT_BYTES], left[AMOUNT_BYTES];

	if (!omitted->allocated.samples)
		return;
	fprintf(out, "%" PRIu64 " process%s of under %" PRIu64 " samples left no profile", omitted->processes,
	    plural(omitted->processes), facts->min_samples);
	fprintf(out, ":\n  %" PRIu64 " samples, for %s allocated and %s in use at the end\n",
	    omitted->allocated.samples, amount_bytes(bytes, allocated),
	    amount_bytes(omitted->at_end_bytes, left));
}

static void print_running(FILE *out, uint64_t running)
{
	if (running)
		fprintf(out, "still recorded, to be summed up at %s end%s: %" PRIu64 " process%s\n",
		    running == 1 ? "its" : "their", running == 1 ? "" : "s", running, plural(running));
}

/* ---- how to go on */

static const struct summary_row *largest(const struct summary_list *list)
{
	const struct summary_row *row = list->row_count ? &list->rows[0] : NULL;

	return list->has_command && (!row || summary_row_bytes(&list->command) >= summary_row_bytes(row))
	    ? &list->command
	    : row;
}

/* The row with the most resident memory among those with lines about it. NULL if there is none. The largest
 * heap comes first. */
static const struct summary_row *most_resident(const struct summary_list *list)
{
	const struct summary_row *most = largest(list);

	if (most && !(most->resident && *most->resident))
		most = NULL;
	for (size_t i = 0; i < list->row_count; i++) {
		const struct summary_row *row = &list->rows[i];

		if (row->resident && *row->resident && (!most || row->resident_bytes > most->resident_bytes))
			most = row;
	}
	return most;
}

/* About the row that the user looks at first. No period shows what an allocator hides. */
static void print_advice(FILE *out, const struct summary_list *list, const struct summary_row *row)
{
	const uint64_t period = row->period_bytes / PERIOD_SHARE;
	const struct summary_estimate *estimate = row->has_peak ? &row->peak : &row->at_end;
	uint64_t samples = estimate->samples;
	bool good = samples && sqrt(estimate->bytes_variance) <= estimate->bytes / ERROR_SHARE;

	if (!period || samples >= SAMPLES_MANY || good || row->hidden || (!samples && list->unseen.what[0]))
		return;
	fprintf(out, "%s: record with a smaller period%s, such as -p %" PRIu64 "%s\n",
	    !samples            ? "no samples"
	        : row->has_peak ? "few samples at the peak"
	                        : "few samples in use",
	    samples ? "" : " for more", period < 1024 ? period : period / 1024, period < 1024 ? "" : "K");
}

static void print_single(FILE *out, const struct summary_list *list, const struct summary_facts *facts)
{
	const struct summary_row *row = largest(list);
	const char *path = summary_row_path(row);

	print_alarms(out, list);
	fputs(facts->missed, out);
	fputs(row->block ? row->block : "", out);
	fputs(row->resident ? row->resident : "", out);
	print_omitted(out, list, facts);
	print_running(out, facts->running);
	if (path && row->path && path != row->path)
		fprintf(out, "  profile at the end: %s\n", row->path);
	if (path) {
		fprintf(
		    out, "show %s: heaptap report %s\n", path == row->peak_path ? "the peak" : "it", path);
		fprintf(out, "or: go tool pprof -http=: %s\n", path);
	}
	print_advice(out, list, row);
}

static void print_crowd(FILE *out, const struct summary_list *list, const struct summary_facts *facts)
{
	const struct summary_row *row = largest(list);
	const char *folder = NULL, *path = summary_row_path(row);
	char pid[PROCESS_END_PID_BYTES];
	size_t folder_bytes = summary_table_folder(list, &folder);

	if (list->has_command)
		fprintf(
		    out, "%s (pid %d) %s\n", list->command.title, (int)list->command.pid, list->command.end);
	print_alarms(out, list);
	fputs(facts->missed, out);
	print_unseen(out, list);
	fprintf(out, "%" PRIu64 " processes by their peaks%s%.*s:\n", list->processes,
	    folder_bytes ? "; profiles in " : "", (int)folder_bytes, folder ? folder : "");
	summary_table_print(out, list, facts->width);
	const struct summary_row *most = most_resident(list);
	if (most)
		fprintf(out, "the %s, %s (%s):\n%s", most == row ? "largest" : "most resident", most->title,
		    process_end_pid(most->pid, pid), most->resident);
	print_omitted(out, list, facts);
	print_running(out, facts->running);
	if (list->stackless)
		fprintf(out, "%" PRIu64 " of %" PRIu64 " samples without a stack: each profile says why\n",
		    list->stackless, list->samples);
	if (path)
		fprintf(out, "show the largest: heaptap report %s\n", path);
	if (folder)
		fprintf(out, "show all, added up: heaptap report%s%.*s\n", folder_bytes ? " " : "",
		    (int)folder_bytes, folder);
	print_advice(out, list, row);
}

void summary_screen_print(FILE *out, const struct summary_list *list, const struct summary_facts *facts)
{
	if (list->processes == 1)
		print_single(out, list, facts);
	else if (list->processes > 1)
		print_crowd(out, list, facts);
	else {
		print_alarms(out, list);
		fputs(facts->missed, out);
		print_omitted(out, list, facts);
		print_running(out, facts->running);
	}
}

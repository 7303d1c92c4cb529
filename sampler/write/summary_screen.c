/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/summary_screen.h"

#include "pprof/model/estimate.h"
#include "pprof/text/amount.h"
#include "sampler/linux/screen.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	SAMPLES_MANY = 30, /* heaptap report advises the same below this number */
	ERROR_SHARE = 10,  /* few samples of large blocks are enough if the error is a tenth of the bytes */
	PERIOD_SHARE = 32, /* advises 16K after the default of 512K */
};

/*
 * ---- the table: a line for each process that has a row, the largest first, and a line for the rest
 *
 * If the columns do not fit, pid and name are left out first, provided that the files' names have both, and
 * then the errors.
 */

enum column { PEAK, PEAK_ERROR, AT_END, AT_END_ERROR, SAMPLES, PID, PROCESS, PROFILE, COLUMNS };
enum { LINES = SUMMARY_ROWS + 3, CELL_BYTES = PROCESS_NAME_BYTES + 32 };

struct line {
	char cell[PROFILE][CELL_BYTES];
	const char *profile; /* the text of the last column, of any length */
	char more[48];
};

struct table {
	struct line lines[LINES];
	size_t count;
	int widths[COLUMNS];
	bool shown[COLUMNS];
};

/* ---- the files */

/* Puts COMMAND's row among the others, by its peak. */
static size_t ordered(const struct summary_list *list, const struct summary_row *rows[SUMMARY_ROWS + 1])
{
	size_t count = 0, i = 0;

	for (; i < list->row_count &&
	     (!list->has_command || summary_row_bytes(&list->rows[i]) > summary_row_bytes(&list->command));
	     i++)
		rows[count++] = &list->rows[i];
	if (list->has_command)
		rows[count++] = &list->command;
	for (; i < list->row_count; i++)
		rows[count++] = &list->rows[i];
	return count;
}

static size_t folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

size_t summary_screen_folder(const struct summary_list *list, const char **folder)
{
	const struct summary_row *rows[SUMMARY_ROWS + 1];
	size_t count = ordered(list, rows), length = 0;
	const char *common = NULL;

	for (size_t i = 0; i < count; i++) {
		const char *path = summary_row_path(rows[i]);

		if (!path)
			continue;
		if (!common)
			length = folder_length(path);
		else if (folder_length(path) != length || memcmp(path, common, length) != 0)
			return 0;
		common = path;
	}
	*folder = common;
	return common ? length : 0;
}

/* Does each file's name have the pid and the title of its process? */
static bool profiles_name_processes(const struct summary_row *const rows[], size_t count)
{
	char pid[24];

	for (size_t i = 0; i < count; i++) {
		const char *path = summary_row_path(rows[i]);

		snprintf(pid, sizeof(pid), ".%d.", (int)rows[i]->pid);
		if (!path || !strstr(path, pid) || !strstr(path, rows[i]->title) || rows[i]->full_name[0])
			return false;
	}
	return true;
}

/* ---- cells */

/* For a process without samples. The bound holds for the sum of several, too. */
static void set_nothing(char *cell, bool certain, uint64_t period_bytes)
{
	char text[AMOUNT_BYTES];
	double bound = certain ? summary_bound_bytes(period_bytes) : 0;

	if (bound > 0)
		snprintf(cell, CELL_BYTES, "< %s", amount_bytes(bound, text));
	else
		strcpy(cell, "nothing");
}

static void set_estimate(
    struct line *line, enum column column, const struct summary_row *row, const struct summary_estimate *e)
{
	char text[AMOUNT_BYTES];

	if (!e->samples) {
		set_nothing(line->cell[column], row->certain, row->period_bytes);
		return;
	}
	strcpy(line->cell[column], amount_bytes(e->bytes, text));
	strcpy(line->cell[column + 1],
	    estimate_doubt(e->bytes, (double)e->samples, e->bytes_variance, false, text));
}

static void add_row(struct table *table, const struct summary_row *row, size_t folder)
{
	struct line *line = &table->lines[table->count++];
	const char *path = summary_row_path(row);

	if (row->has_peak)
		set_estimate(line, PEAK, row, &row->peak);
	set_estimate(line, AT_END, row, &row->at_end);
	snprintf(line->cell[SAMPLES], CELL_BYTES, "%" PRIu64, row->samples);
	snprintf(line->cell[PID], CELL_BYTES, row->pid ? "%d" : "?", (int)row->pid);
	snprintf(line->cell[PROCESS], CELL_BYTES, "%s", row->full_name[0] ? row->full_name : row->title);
	line->profile = path ? path + folder : "not written";
}

static void add_rest(struct table *table, const struct summary_rest *rest)
{
	struct line *line = &table->lines[table->count++];
	char text[AMOUNT_BYTES];

	strcpy(line->cell[PEAK], amount_bytes(rest->peak_bytes, text));
	if (rest->at_end_samples)
		strcpy(line->cell[AT_END], amount_bytes(rest->at_end_bytes, text));
	else
		set_nothing(line->cell[AT_END], !rest->uncertain, rest->period_bytes);
	snprintf(line->cell[SAMPLES], CELL_BYTES, "%" PRIu64, rest->samples);
	snprintf(line->more, sizeof(line->more), "and %" PRIu64 " more, added up", rest->processes);
	line->profile = line->more;
}

/* ---- lines */

static int columns_of(const char *text)
{
	return screen_columns(text);
}

static void measure(struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		for (int c = 0; c < PROFILE; c++) {
			int columns = columns_of(table->lines[i].cell[c]);

			if (columns > table->widths[c])
				table->widths[c] = columns;
		}
	for (size_t i = 0; i < table->count; i++)
		if (columns_of(table->lines[i].profile) > table->widths[PROFILE])
			table->widths[PROFILE] = columns_of(table->lines[i].profile);
	for (int c = 0; c < COLUMNS; c++)
		table->shown[c] = c == PROFILE || table->widths[c] > 0;
}

static int width_of(const struct table *table)
{
	int width = 0;

	for (int c = 0; c < COLUMNS; c++)
		if (table->shown[c])
			width += table->widths[c] + 2;
	return width;
}

static void print_line(FILE *out, const struct table *table, const struct line *line)
{
	for (int c = 0; c < PROFILE; c++) {
		int blanks = table->widths[c] - columns_of(line->cell[c]);

		if (!table->shown[c])
			continue;
		if (c == PROCESS)
			fprintf(out, "  %s%*s", line->cell[c], blanks, "");
		else
			fprintf(out, "  %*s%s", blanks, "", line->cell[c]);
	}
	fprintf(out, "  %s\n", line->profile);
}

void summary_screen_table(FILE *out, const struct summary_list *list, int width)
{
	static const char *const heads[PROFILE] = {[PEAK] = "peak",
	    [PEAK_ERROR] = "error",
	    [AT_END] = "at end",
	    [AT_END_ERROR] = "error",
	    [SAMPLES] = "samples",
	    [PID] = "pid",
	    [PROCESS] = "process"};
	const struct summary_row *rows[SUMMARY_ROWS + 1];
	const char *common = "";
	size_t count = ordered(list, rows), folder = summary_screen_folder(list, &common);
	struct table table = {.count = 1, .lines[0].profile = "profile"};

	for (size_t i = 0; i < count; i++)
		add_row(&table, rows[i], folder);
	if (list->rest.processes)
		add_rest(&table, &list->rest);
	measure(&table);
	for (int c = 0; c < PROFILE; c++)
		if (table.shown[c])
			strcpy(table.lines[0].cell[c], heads[c]);
	measure(&table);
	if (width && width_of(&table) > width && profiles_name_processes(rows, count))
		table.shown[PID] = table.shown[PROCESS] = false;
	if (width && width_of(&table) > width)
		table.shown[PEAK_ERROR] = table.shown[AT_END_ERROR] = false;
	for (size_t i = 0; i < table.count; i++)
		print_line(out, &table, &table.lines[i]);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "es";
}

/* ---- what went wrong */

static void print_alarms(FILE *out, const struct summary_list *list)
{
	char amount[AMOUNT_BYTES], pid[END_PHRASE_PID_BYTES];

	for (size_t i = 0; i < list->alarm_count; i++) {
		const struct summary_alarm *alarm = &list->alarms[i];

		fprintf(out, "%s (%s) %s", alarm->title, end_phrase_pid(alarm->pid, pid), alarm->end);
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
	char pid[END_PHRASE_PID_BYTES];
	size_t folder_bytes = summary_screen_folder(list, &folder);

	if (list->has_command)
		fprintf(
		    out, "%s (pid %d) %s\n", list->command.title, (int)list->command.pid, list->command.end);
	print_alarms(out, list);
	fputs(facts->missed, out);
	print_unseen(out, list);
	fprintf(out, "%" PRIu64 " processes by their peaks%s%.*s:\n", list->processes,
	    folder_bytes ? "; profiles in " : "", (int)folder_bytes, folder ? folder : "");
	summary_screen_table(out, list, facts->width);
	const struct summary_row *most = most_resident(list);
	if (most)
		fprintf(out, "the %s, %s (%s):\n%s", most == row ? "largest" : "most resident", most->title,
		    end_phrase_pid(most->pid, pid), most->resident);
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

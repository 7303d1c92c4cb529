/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/summary_table.h"

#include "pprof/model/estimate.h"
#include "pprof/text/amount.h"
#include "sampler/linux/screen.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

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

size_t summary_table_folder(const struct summary_list *list, const char **folder)
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

void summary_table_print(FILE *out, const struct summary_list *list, int width)
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
	size_t count = ordered(list, rows), folder = summary_table_folder(list, &common);
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

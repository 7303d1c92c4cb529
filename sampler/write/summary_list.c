/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/summary_list.h"

#include "pprof/text/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARE_AT_END = 10 }; /* if less than this part of the peak is left, the exit profile says little */

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
	if (row->alarm != PROCESS_END_QUIET && !command) {
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
	    .alarm = process_end_alarm(target),
	    .bytes = peak_bytes,
	    .samples = allocated.samples};
	if (alarm.alarm == PROCESS_END_QUIET)
		return;
	summary_title(alarm.title, target->title);
	process_end_phrase(target, alarm.end, sizeof(alarm.end));
	add_alarm(list, &alarm);
}

void summary_list_clear(struct summary_list *list)
{
	for (size_t i = 0; i < list->row_count; i++)
		summary_row_fini(&list->rows[i]);
	summary_row_fini(&list->command);
	*list = (struct summary_list){.row_count = 0};
}

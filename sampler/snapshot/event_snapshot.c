/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/event_snapshot.h"

#include "pprof/text/log_line.h"
#include "sampler/snapshot/process_end.h"
#include "sampler/terminal/amount.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARE_PERCENT = 90 }; /* of the count; if samples stand for less, the summary says so */

double event_sheet_scale(const struct event_sheet *sheet)
{
	/* Only hardware counters are multiplexed. */
	return sheet->event->kind == EVENT_HARDWARE
	    ? event_scale(sheet->counters.enabled_ns, sheet->counters.running_ns)
	    : 1;
}

/* ---- comments */

static void comment_event(struct profile *profile, const struct event_sheet *sheet)
{
	const struct event *event = sheet->event;
	char rate[64];

	event_describe_rate(event, rate, sizeof(rate));
	sheet_comment(profile, "event: %s, %s; %s", event->text, rate,
	    event->part[0].exclude_user          ? "the kernel's side only"
	        : !event->part[0].exclude_kernel ? "the program's side and the kernel's"
	        : event->kernel_refused
	        ? "the program's side only: kernel.perf_event_paranoid hides the kernel's from this user"
	        : "the program's side only");
}

static void comment_samples(
    struct profile *profile, const struct event_snapshot *s, const struct event_sheet *sheet)
{
	const uint64_t *outcome = s->subject->outcome[sheet - s->sheets];
	struct sheet_text text;

	if (!sheet_text_open(&text))
		return;
	fprintf(text.out, "samples: %" PRIu64 " taken", sheet->total.samples);
	sheet_print_outcomes(text.out, outcome);
	if (s->subject->no_room)
		fprintf(text.out, ", no memory for %" PRIu64 " of all events", s->subject->no_room);
	sheet_text_add(&text, profile);
}

/* What the kernel counted, and what the samples stand for: the difference was lost, throttled, or belongs to
 * threads that ended before their first sample was due. */
static void comment_counts(
    struct profile *profile, const struct event_snapshot *s, const struct event_sheet *sheet)
{
	const struct counter_totals *c = &sheet->counters;
	const char *unit = sheet->event->kind == EVENT_CLOCK ? " ns" : "";
	char lost[64] = "an unknown number";

	if (c->lost_known)
		snprintf(lost, sizeof(lost), "%" PRIu64, c->lost);
	sheet_comment(profile,
	    "of all processes: the kernel counted %" PRIu64 "%s, samples stand for %" PRIu64
	    "%s (%.2f%%); samples lost for want "
	    "of room: %s; held back by the kernel %" PRIu64 " times; %" PRIu64 " bad records",
	    c->counted, unit, sheet->sum.value, unit,
	    c->counted ? 100 * (double)sheet->sum.value / (double)c->counted : 100.0, lost, sheet->throttled,
	    s->bad);
	if (event_sheet_scale(sheet) > 1)
		sheet_comment(profile, "multiplexed: counted %.2f%% of the time, values are scaled by %.4f",
		    100 / event_sheet_scale(sheet), event_sheet_scale(sheet));
	if (c->cpus_counted < c->cpus && sheet->event->cpu < 0)
		sheet_comment(profile,
		    "counted on %u of %u processors: the others do not have this event, and the time on them "
		    "is in no number",
		    c->cpus_counted, c->cpus);
	if (c->incomplete)
		profile_add_comment(profile,
		    "after 2 s it was open whether each thread is counted: threads were being created all "
		    "the time, or one never ran; some may be in no number");
}

static void comment_faults(struct profile *profile, const struct event_sheet *sheet)
{
	if (sheet->event->kind != EVENT_FAULT)
		return;
	profile_add_comment(profile,
	    "resident: pages that came when they were first touched, with their size; not what is resident "
	    "now: munmap and "
	    "madvise are not seen, a page that is copied after fork() or swapped in again counts again, and "
	    "one fault may map "
	    "several pages of a file");
	if (sheet->event->part[0].exclude_kernel)
		profile_add_comment(profile,
		    "resident: pages that the kernel touches first, for read() into fresh memory and the "
		    "like, are not seen");
}

/* ---- samples */

static void fill_values(const struct event_sheet *sheet, const struct event_row *row, int64_t values[2])
{
	double scale = event_sheet_scale(sheet);
	int64_t value = scale > 1 ? (int64_t)llround((double)row->value * scale) : (int64_t)row->value;
	bool clock = sheet->event->kind == EVENT_CLOCK;

	values[0] = clock ? (int64_t)row->samples : value;
	values[1] = clock ? value : (int64_t)row->bytes;
}

static int add_row(struct profile *profile, struct symbolizer *symbolizer, const struct threads *threads,
    const struct event_sheet *sheet, const struct event_row *row)
{
	const uint32_t *locations;
	int64_t values[2];
	size_t depth = symbolizer_stack(symbolizer, row->stack, false, &locations);
	const char *name = row->tid ? threads_name(threads, row->tid) : NULL;
	const struct profile_label labels[] = {
	    {.key = "thread_id", .num = row->tid},
	    {.key = "thread_name", .str = name},
	};

	fill_values(sheet, row, values);
	return profile_add_sample(profile, locations, depth, values, labels, !row->tid ? 0 : name ? 2 : 1);
}

static int add_lost(struct profile *profile, struct symbolizer *symbolizer, const struct event_sheet *sheet)
{
	uint64_t each = sheet->event->hz && sheet->total.samples ? sheet->total.value / sheet->total.samples
	                                                         : sheet->event->period;
	const struct event_row row = {.samples = sheet->lost_here,
	    .value = sheet->lost_here * each,
	    .bytes = sheet->event->kind == EVENT_FAULT
	        ? sheet->lost_here * each * (uint64_t)sysconf(_SC_PAGESIZE)
	        : 0};
	uint32_t location = symbolizer_marker(symbolizer, STACK_LOST_SAMPLES);
	int64_t values[2];

	fill_values(sheet, &row, values);
	return profile_add_sample(profile, &location, 1, values, NULL, 0);
}

static void set_types(
    struct profile *profile, const struct event_snapshot *s, const struct event_sheet *sheet)
{
	const struct event *event = sheet->event;
	uint64_t period =
	    event->hz ? sheet->total.samples ? sheet->total.value / sheet->total.samples : 1 : event->period;
	bool clock = event->kind == EVENT_CLOCK;

	if (clock)
		profile_add_sample_type(profile, "samples", "count");
	profile_add_sample_type(profile, event->type, clock ? "nanoseconds" : "count");
	if (event->kind == EVENT_FAULT)
		profile_add_sample_type(profile, "resident", "bytes");
	profile_set_default_sample_type(profile, event->kind == EVENT_FAULT ? "resident" : event->type);
	profile_set_period(profile, event->type, clock ? "nanoseconds" : "count", (int64_t)period);
	profile_set_time(profile, s->base.unix_ns, (int64_t)s->duration_ns);
}

static void describe(struct profile *profile, const struct snapshot *snapshot, const struct sheet *base)
{
	const struct event_snapshot *s = (const struct event_snapshot *)snapshot;
	const struct event_sheet *sheet = (const struct event_sheet *)base;

	set_types(profile, s, sheet);
	sheet_comment(profile, "snapshot: %s", snapshot->cause);
	comment_event(profile, sheet);
	comment_samples(profile, s, sheet);
	comment_counts(profile, s, sheet);
	comment_faults(profile, sheet);
}

static void mark_stacks(const struct sheet *base, bool *used)
{
	const struct event_sheet *sheet = (const struct event_sheet *)base;

	for (size_t i = 0; i < sheet->count; i++)
		used[sheet->rows[i].stack] = true;
}

static int fill_rows(struct profile *profile, struct symbolizer *symbolizer, const struct snapshot *snapshot,
    const struct sheet *base)
{
	const struct event_sheet *sheet = (const struct event_sheet *)base;
	int error = 0;

	for (size_t i = 0; i < sheet->count && !error; i++)
		error = add_row(profile, symbolizer, snapshot->target->threads, sheet, &sheet->rows[i]);
	return !error && sheet->lost_here ? add_lost(profile, symbolizer, sheet) : error;
}

static int write_all(const struct writer_item *item, void **shared)
{
	const struct event_snapshot *s = (const struct event_snapshot *)item;
	const struct sheet *sheets[EVENTS_MAX];

	for (size_t i = 0; i < s->sheet_count; i++)
		sheets[i] = &s->sheets[i].base;
	return sheets_write(&s->base, sheets, s->sheet_count, shared);
}

static void discard(struct writer_item *item)
{
	struct event_snapshot *s = (struct event_snapshot *)item;

	for (size_t i = 0; i < s->sheet_count; i++) {
		free((char *)s->sheets[i].base.path);
		free(s->sheets[i].rows);
	}
	free(s);
}

int event_snapshot_set_path(struct event_snapshot *s, size_t event, const char *path)
{
	static const struct sheet_kind kind = {.allocator_stays = true,
	    .describe = describe,
	    .mark_stacks = mark_stacks,
	    .fill_rows = fill_rows};
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	s->sheets[event].base.kind = &kind;
	s->sheets[event].base.path = copy;
	if (!s->base.path[0])
		s->base.path = copy;
	return 0;
}

struct event_snapshot *event_snapshot_new(void)
{
	struct event_snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->base.item.write = write_all;
	s->base.item.discard = discard;
	s->base.path = "";
	return s;
}

/* ---- what the user reads */

static void print_sheet(const struct event_sheet *sheet)
{
	char value[64], bytes[48] = "", size[AMOUNT_BYTES], share[80] = "", lost[32] = "an unknown number";
	double total = (double)sheet->total.value * event_sheet_scale(sheet);

	if (sheet->event->kind == EVENT_CLOCK)
		snprintf(value, sizeof(value), "%.3f s", total / 1e9);
	else
		snprintf(value, sizeof(value), "%.0f", total);
	if (sheet->event->kind == EVENT_FAULT)
		snprintf(bytes, sizeof(bytes), ", %s", amount_bytes((double)sheet->total.bytes, size));
	if (sheet->counters.counted && sheet->sum.value < sheet->counters.counted / 100 * SHARE_PERCENT)
		snprintf(share, sizeof(share), ", samples stand for %.1f%% of what the kernel counted",
		    100 * (double)sheet->sum.value / (double)sheet->counters.counted);
	if (sheet->counters.lost_known)
		snprintf(lost, sizeof(lost), "%" PRIu64, sheet->counters.lost);
	log_line("  %s %s%s in %" PRIu64 " samples; %s lost%s: %s", sheet->event->label, value, bytes,
	    sheet->total.samples, lost, share, sheet->base.path);
}

void event_snapshot_print(const struct snapshot *snapshot)
{
	const struct event_snapshot *s = (const struct event_snapshot *)snapshot;
	const struct target *target = snapshot->target;
	char end[PROCESS_END_BYTES];

	process_end_phrase(target, end, sizeof(end));
	log_line("%s (pid %d) %s; events:", target->title, (int)target->pid, end);
	for (size_t i = 0; i < s->sheet_count; i++)
		if (s->sheets[i].base.path)
			print_sheet(&s->sheets[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/event_snapshot.h"

#include "pprof/encode.h"
#include "pprof/file.h"
#include "pprof/gzip.h"
#include "sampler/snapshot/symbolizer.h"
#include "sampler/symbol/symbol.h"
#include "sampler/terminal/log_line.h"
#include "sampler/snapshot/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARE_PERCENT = 90 }; /* of what was counted; when samples stand for less, the summary says so */

double event_sheet_scale(const struct event_sheet *sheet)
{
	/* Only hardware counters are shared by turns. */
	return sheet->event->kind == EVENT_HARDWARE
	    ? event_scale(sheet->counters.enabled_ns, sheet->counters.running_ns)
	    : 1;
}

/* ---- comments */

static void comment_event(struct profile *profile, const struct event_sheet *sheet)
{
	const struct event *event = sheet->event;
	char rate[64], text[512];
	event_describe_rate(event, rate, sizeof(rate));
	snprintf(text, sizeof(text), "event: %s, %s; %s", event->text, rate,
	    event->part[0].exclude_user          ? "the kernel's side only"
	        : !event->part[0].exclude_kernel ? "the program's side and the kernel's"
	        : event->kernel_refused
	        ? "the program's side only: kernel.perf_event_paranoid hides the kernel's from this user"
	        : "the program's side only");
	profile_add_comment(profile, text);
}

static void comment_samples(
    struct profile *profile, const struct event_snapshot *s, const struct event_sheet *sheet)
{
	const uint64_t *outcome = s->subject->outcome[sheet - s->sheets];
	char text[1024];
	int at = snprintf(text, sizeof(text), "samples: %" PRIu64 " taken", sheet->total.samples);
	for (uint32_t i = 0; i < UNWIND_OUTCOMES && at < (int)sizeof(text) - 64; i++)
		if (outcome[i] && i != UNWIND_COMPLETE)
			at += snprintf(text + at, sizeof(text) - (size_t)at, ", %s %" PRIu64,
			    unwind_outcome_name((enum unwind_outcome)i), outcome[i]);
	if (s->subject->no_room && at < (int)sizeof(text) - 64)
		snprintf(text + at, sizeof(text) - (size_t)at, ", no memory for %" PRIu64 " of all events",
		    s->subject->no_room);
	profile_add_comment(profile, text);
}

/* What the kernel counted, against what samples say: the difference is what was lost, held back, or ended
 * before its first sample was due. */
static void comment_counts(
    struct profile *profile, const struct event_snapshot *s, const struct event_sheet *sheet)
{
	const struct counter_totals *c = &sheet->counters;
	const char *unit = sheet->event->kind == EVENT_CLOCK ? " ns" : "";
	char text[512], lost[64] = "an unknown number";
	if (c->lost_known)
		snprintf(lost, sizeof(lost), "%" PRIu64, c->lost);
	snprintf(text, sizeof(text),
	    "of all processes: the kernel counted %" PRIu64 "%s, samples stand for %" PRIu64
	    "%s (%.2f%%); samples lost for want "
	    "of room: %s; held back by the kernel %" PRIu64 " times; %" PRIu64 " bad records",
	    c->counted, unit, sheet->sum.value, unit,
	    c->counted ? 100 * (double)sheet->sum.value / (double)c->counted : 100.0, lost, sheet->throttled,
	    s->bad);
	profile_add_comment(profile, text);
	if (event_sheet_scale(sheet) > 1) {
		snprintf(text, sizeof(text),
		    "multiplexed: counted %.2f%% of the time, values are scaled by %.4f",
		    100 / event_sheet_scale(sheet), event_sheet_scale(sheet));
		profile_add_comment(profile, text);
	}
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

static void add_comments(
    struct profile *profile, const struct event_snapshot *s, const struct event_sheet *sheet)
{
	char text[1024];
	profile_add_comment(profile, "heaptap " HEAPTAP_VERSION);
	snprintf(text, sizeof(text), "pid=%d comm=%s host=%s", (int)s->subject->target.pid,
	    s->subject->target.title, s->host);
	profile_add_comment(profile, text);
	snprintf(text, sizeof(text), "snapshot: %s", s->cause);
	profile_add_comment(profile, text);
	comment_event(profile, sheet);
	comment_samples(profile, s, sheet);
	comment_counts(profile, s, sheet);
	comment_faults(profile, sheet);
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

static int add_row(struct profile *profile, struct symbolizer *symbolizer, const struct event_snapshot *s,
    const struct event_sheet *sheet, const struct event_row *row)
{
	const uint32_t *locations;
	int64_t values[2];
	size_t depth = symbolizer_stack(symbolizer, row->stack, false, &locations);
	const char *name = row->tid ? threads_name(s->subject->target.threads, row->tid) : NULL;
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
	profile_set_time(profile, s->unix_ns, (int64_t)s->duration_ns);
}

static int fill(struct profile *profile, const struct event_snapshot *s, const struct event_sheet *sheet,
    struct symbols *symbols)
{
	set_types(profile, s, sheet);
	add_comments(profile, s, sheet);
	bool *used = calloc(stacks_node_count(s->subject->target.stacks), sizeof(*used));
	if (!used)
		return -ENOMEM;
	for (size_t i = 0; i < sheet->count; i++)
		used[sheet->rows[i].stack] = true;
	const struct symbolizer_source source = {
	    .stacks = s->subject->target.stacks,
	    .maps = s->subject->target.maps,
	    .program = s->subject->target.name,
	    .pid = s->subject->target.pid,
	    .symbols = symbols,
	    .detail = s->item.detail,
	    .allocator_stays = true,
	};
	struct symbolizer *symbolizer = symbolizer_new(profile, &source, used);
	free(used);
	if (!symbolizer)
		return -ENOMEM;
	int error = 0;
	for (size_t i = 0; i < sheet->count && !error; i++)
		error = add_row(profile, symbolizer, s, sheet, &sheet->rows[i]);
	if (!error && sheet->lost_here)
		error = add_lost(profile, symbolizer, sheet);
	symbolizer_free(symbolizer);
	profile_compute_mapping_flags(profile);
	return error;
}

static int write_sheet(
    const struct event_snapshot *s, const struct event_sheet *sheet, struct symbols *symbols)
{
	struct profile *profile = profile_new();
	uint8_t *raw = NULL, *packed = NULL;
	size_t raw_bytes, packed_bytes;
	if (!profile)
		return -ENOMEM;
	int error = fill(profile, s, sheet, symbols);
	if (!error)
		error = encode_profile(profile, &raw, &raw_bytes);
	if (!error)
		error = gzip_encode(raw, raw_bytes,
		    s->kind == SNAPSHOT_EXIT ? GZIP_LEVEL_SMALL : GZIP_LEVEL_FAST, &packed, &packed_bytes);
	if (!error)
		error = file_publish(
		    sheet->path, packed, packed_bytes, 0600, FILE_MKDIR | (s->sync ? FILE_FSYNC : 0));
	free(raw);
	free(packed);
	profile_free(profile);
	return error;
}

static int write_all(const struct writer_item *item)
{
	const struct event_snapshot *s = (const struct event_snapshot *)item;
	struct symbols *symbols = symbolizer_symbols(s->item.detail, s->debuginfod);
	int first = symbols ? 0 : -ENOMEM;
	for (size_t i = 0; i < s->sheet_count && symbols; i++) {
		int error = s->sheets[i].path ? write_sheet(s, &s->sheets[i], symbols) : 0;
		first = first ? first : error;
	}
	symbols_free(symbols);
	return first;
}

static void discard(struct writer_item *item)
{
	struct event_snapshot *s = (struct event_snapshot *)item;
	for (size_t i = 0; i < s->sheet_count; i++) {
		free(s->sheets[i].path);
		free(s->sheets[i].rows);
	}
	free(s);
}

void event_snapshot_free(struct event_snapshot *s)
{
	if (s)
		discard(&s->item);
}

struct event_snapshot *event_snapshot_new(void)
{
	struct event_snapshot *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->item.write = write_all;
	s->item.discard = discard;
	return s;
}

/* ---- what the user reads */

const char *event_snapshot_path(const struct event_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->sheet_count; i++)
		if (snapshot->sheets[i].path)
			return snapshot->sheets[i].path;
	return "";
}

static void print_sheet(const struct event_sheet *sheet)
{
	char value[64], bytes[32] = "", size[32], share[80] = "", lost[32] = "an unknown number";
	double total = (double)sheet->total.value * event_sheet_scale(sheet);
	if (sheet->event->kind == EVENT_CLOCK)
		snprintf(value, sizeof(value), "%.3f s", total / 1e9);
	else
		snprintf(value, sizeof(value), "%.0f", total);
	if (sheet->event->kind == EVENT_FAULT)
		snprintf(bytes, sizeof(bytes), ", %s",
		    summary_bytes((double)sheet->total.bytes, size, sizeof(size)));
	if (sheet->counters.counted && sheet->sum.value < sheet->counters.counted / 100 * SHARE_PERCENT)
		snprintf(share, sizeof(share), ", samples stand for %.1f%% of what the kernel counted",
		    100 * (double)sheet->sum.value / (double)sheet->counters.counted);
	if (sheet->counters.lost_known)
		snprintf(lost, sizeof(lost), "%" PRIu64, sheet->counters.lost);
	log_line("  %s %s%s in %" PRIu64 " samples; %s lost%s: %s", sheet->event->label, value, bytes,
	    sheet->total.samples, lost, share, sheet->path);
}

void event_snapshot_print(const struct event_snapshot *snapshot, int error, int verbosity)
{
	const struct event_process *s = snapshot->subject;
	char end[128];
	if (error) {
		log_line("event profiles of pid %d: %s: %s", (int)s->target.pid,
		    event_snapshot_path(snapshot), strerror(-error));
		return;
	}
	if (snapshot->kind == SNAPSHOT_NUMBERED && verbosity > 0)
		log_line("pid %d: snapshot %s: %s", (int)s->target.pid, snapshot->cause,
		    event_snapshot_path(snapshot));
	if (snapshot->kind == SNAPSHOT_NUMBERED || verbosity < 0)
		return;
	summary_end(s->target.end, s->target.status, end, sizeof(end));
	log_line("%s (pid %d) %s; events:", s->target.title, (int)s->target.pid, end);
	for (size_t i = 0; i < snapshot->sheet_count; i++)
		if (snapshot->sheets[i].path)
			print_sheet(&snapshot->sheets[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/snapshot.h"

#include "pprof/drop_frames.h"
#include "pprof/encode.h"
#include "pprof/file.h"
#include "pprof/gzip.h"
#include "sampler/symbol/debuginfod.h"
#include "sampler/snapshot/lifetimes_file.h"
#include "sampler/snapshot/symbolizer.h"
#include "sampler/symbol/symbol.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One of the profiles that a snapshot consists of. */
struct sheet {
	const struct snapshot *snapshot;
	struct symbols *symbols; /* of all sheets */
	enum heap_view_kind kind;
	const struct heap_view *view;
	const char *path;
	int64_t unix_ns, duration_ns;
};

/* ---- comments */

static void comment_losses(struct profile *profile, const struct snapshot *s)
{
	const struct process_counters *c = &s->process->counters;
	const struct region_place *place = region_place(s->process->image->region, s->process->place);
	char text[1024];
	int at = snprintf(text, sizeof(text), "samples: %" PRIu64 " taken, %" PRIu64 " lost stacks",
	    s->view.allocated.samples, s->view.lost_alloc.samples);
	for (uint32_t i = 0; i < REGION_LOSS_COUNT && at < (int)sizeof(text) - 64; i++) {
		struct tally tally = region_read_tally(&place->lost[i]);
		if (tally.samples)
			at += snprintf(text + at, sizeof(text) - (size_t)at, ", %s %" PRIu64,
			    region_loss_name((enum region_loss)i), tally.samples);
	}
	const struct {
		const char *how;
		uint64_t count;
	} backends[] = {{"by uprobe", c->by_uprobe}, {"by breakpoint", c->by_breakpoint},
	    {"copied by the hook", c->copied}};
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]) && at < (int)sizeof(text) - 64; i++)
		if (backends[i].count)
			at += snprintf(text + at, sizeof(text) - (size_t)at, ", %s %" PRIu64, backends[i].how,
			    backends[i].count);
	for (uint32_t i = 0; i < UNWIND_OUTCOMES && at < (int)sizeof(text) - 64; i++)
		if (c->outcome[i] && i != UNWIND_COMPLETE)
			at += snprintf(text + at, sizeof(text) - (size_t)at, ", %s %" PRIu64,
			    unwind_outcome_name((enum unwind_outcome)i), c->outcome[i]);
	profile_add_comment(profile, text);
}

static void comment_lifetimes(struct profile *profile, const struct snapshot *s)
{
	const struct lifetime *all = heap_lifetimes(s->process->heap);
	double objects = lifetime_objects(all);
	uint64_t unseen = s->frees_lost + s->process->counters.frees_unknown;
	char text[512];
	if (!all->samples && !unseen)
		return;
	double share = objects > 0 ? 100 / objects : 0;
	int at = snprintf(text, sizeof(text),
	    "lifetimes: of %.0f freed objects (%" PRIu64
	    " samples) %.1f%% were temporary (freed within %g ms by the "
	    "allocating thread), %.1f%% were freed by another thread",
	    objects, all->samples, all->temporary_objects * share, (double)lifetime_temporary_ns() / 1e6,
	    all->other_thread_objects * share);
	if (unseen)
		snprintf(text + at, sizeof(text) - (size_t)at, "; %" PRIu64 " frees are missing from this",
		    unseen);
	profile_add_comment(profile, text);
}

static void comment_debuginfod(struct profile *profile)
{
	char text[512];
	if (debuginfod_describe(text, sizeof(text)))
		profile_add_comment(profile, text);
}

static void comment_cause(struct profile *profile, const struct sheet *sheet)
{
	const struct snapshot *s = sheet->snapshot;
	char text[1024];
	int at;
	if (sheet->kind == HEAP_VIEW_PEAK) {
		time_t seconds = (time_t)(sheet->unix_ns / 1000000000);
		struct tm tm;
		char when[64] = "";
		if (gmtime_r(&seconds, &tm))
			strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
		at = snprintf(text, sizeof(text),
		    "snapshot: peak, inuse_* is the heap at its largest so far, %s.%03dZ; written with %s",
		    when, (int)(sheet->unix_ns / 1000000 % 1000), s->cause);
		if (s->peak_missing && at < (int)sizeof(text) - 64)
			snprintf(text + at, sizeof(text) - (size_t)at,
			    "; %" PRId64 " of its samples are missing", s->peak_missing);
	} else if (sheet->kind == HEAP_VIEW_DELTA) {
		snprintf(text, sizeof(text),
		    "snapshot: delta, what was allocated in the %.3f s before %s; inuse_* is what is "
		    "left of that",
		    (double)sheet->duration_ns / 1e9, s->cause);
	} else {
		snprintf(text, sizeof(text), "snapshot: %s", s->cause);
	}
	profile_add_comment(profile, text);
}

static void add_comments(struct profile *profile, const struct sheet *sheet)
{
	const struct snapshot *s = sheet->snapshot;
	const struct heap_view *view = sheet->view;
	char text[1024];
	profile_add_comment(profile, "heaptap " HEAPTAP_VERSION);
	snprintf(text, sizeof(text), "pid=%d comm=%s host=%s", (int)s->process->target.pid,
	    s->process->target.title, s->host);
	profile_add_comment(profile, text);
	comment_cause(profile, sheet);
	comment_losses(profile, s);
	if (region_unseen_text(s->process->image->region))
		profile_add_comment(profile, region_unseen_text(s->process->image->region));
	uint64_t placeless = region_placeless(s->process->image->region);
	snprintf(
	    text, sizeof(text), "not profiled: %" PRIu64 " forked children that found no place", placeless);
	if (placeless)
		profile_add_comment(profile, text);
	snprintf(text, sizeof(text),
	    "in use%s: %.0f +- %.0f bytes, %.0f +- %.0f objects (one standard error)",
	    sheet->kind == HEAP_VIEW_PEAK        ? " at the peak"
	        : sheet->kind == HEAP_VIEW_DELTA ? " of that"
	                                         : "",
	    view->inuse.bytes, sqrt(view->inuse.bytes_variance), view->inuse.objects,
	    sqrt(view->inuse.objects_variance));
	profile_add_comment(profile, text);
	comment_lifetimes(profile, s);
	profile_add_comment(profile, s->session);
	if (s->trouble[0])
		profile_add_comment(profile, s->trouble);
}

/* ---- samples */

static int64_t rounded(uint64_t value, int shift)
{
	return (int64_t)((value >> shift) + (value >> (shift - 1) & 1));
}

enum { ROW_LABELS = 7 };

static size_t row_labels(
    const struct sheet *sheet, const struct heap_view_row *row, struct profile_label labels[ROW_LABELS])
{
	size_t count = 0;
	if (row->inherited)
		labels[count++] = (struct profile_label){.key = "inherited", .str = "yes"};
	if (row->mapped)
		labels[count++] = (struct profile_label){.key = "alloc_fn", .str = "mmap"};
	if (row->tid) {
		const char *name = threads_name(sheet->snapshot->process->target.threads, row->tid);
		labels[count++] = (struct profile_label){.key = "thread_id", .num = row->tid};
		if (name)
			labels[count++] = (struct profile_label){.key = "thread_name", .str = name};
	}
	if (row->age != HEAP_VIEW_NO_AGE)
		labels[count++] = (struct profile_label){.key = "age", .str = lifetime_class_name(row->age)};
	if (row->size_class >= 1 && row->size_class < 63)
		labels[count++] = (struct profile_label){
		    .key = "size", .num = (int64_t)1 << (row->size_class - 1), .unit = "bytes"};
	if (row->backend)
		labels[count++] =
		    (struct profile_label){.key = "backend", .str = backend_name((enum backend)row->backend)};
	return count;
}

static int add_row(struct profile *profile, struct symbolizer *symbolizer, const struct sheet *sheet,
    const struct heap_view_row *row)
{
	const uint32_t *locations;
	uint32_t lost;
	size_t depth = 1;
	if (row->stack == UINT32_MAX) {
		lost = symbolizer_marker(symbolizer, "[lost stack]");
		locations = &lost;
	} else {
		depth = symbolizer_stack(symbolizer, row->stack, row->mapped, &locations);
	}
	const int64_t values[4] = {
	    rounded(row->alloc.objects_q16, WEIGHT_OBJECTS_SHIFT),
	    rounded(row->alloc.bytes_q8, WEIGHT_BYTES_SHIFT),
	    rounded(row->inuse.objects_q16, WEIGHT_OBJECTS_SHIFT),
	    rounded(row->inuse.bytes_q8, WEIGHT_BYTES_SHIFT),
	};
	/* The mean size of this row's blocks, as Go writes it: the estimates of bytes and objects have one
	 * ratio. */
	bool allocated = values[0] > 0;
	int64_t objects = allocated ? values[0] : values[2], bytes = allocated ? values[1] : values[3];
	struct profile_label labels[ROW_LABELS + 1] = {
	    {.key = "bytes", .num = objects > 0 ? (bytes + objects / 2) / objects : bytes, .unit = "bytes"},
	};
	size_t count = 1 + row_labels(sheet, row, labels + 1);
	return profile_add_sample(profile, locations, depth, values, labels, count);
}

static int publish(const struct snapshot *s, const char *path, const void *data, size_t bytes)
{
	return file_publish(path, data, bytes, 0600, FILE_MKDIR | (s->sync ? FILE_FSYNC : 0));
}

static int write_lifetimes(
    const struct snapshot *s, const struct profile *profile, struct symbolizer *symbolizer)
{
	const struct lifetimes_input input = {
	    .heap = s->process->heap,
	    .live_scan = &s->live_scan,
	    .frees_missing = s->frees_lost + s->process->counters.frees_unknown,
	    .profile = profile,
	    .symbolizer = symbolizer,
	};
	size_t bytes;
	char *text = lifetimes_file_print(&input, &bytes);
	int error = text ? publish(s, s->lifetimes_path, text, bytes) : -ENOMEM;
	free(text);
	return error;
}

static int fill(struct profile *profile, const struct sheet *sheet)
{
	static const char *const types[4][2] = {{"alloc_objects", "count"}, {"alloc_space", "bytes"},
	    {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
	const struct snapshot *s = sheet->snapshot;
	const struct heap_view *view = sheet->view;
	for (size_t i = 0; i < 4; i++)
		profile_add_sample_type(profile, types[i][0], types[i][1]);
	profile_set_default_sample_type(
	    profile, sheet->kind == HEAP_VIEW_DELTA ? "alloc_space" : "inuse_space");
	profile_set_period(profile, "space", "bytes", (int64_t)s->period_bytes);
	profile_set_time(profile, sheet->unix_ns, sheet->duration_ns);
	profile_set_drop_frames(profile, DROP_FRAMES_HEAP);
	add_comments(profile, sheet);

	bool *used = calloc(stacks_node_count(s->process->target.stacks), sizeof(*used));
	if (!used)
		return -ENOMEM;
	for (size_t i = 0; i < view->count; i++)
		if (view->rows[i].stack != UINT32_MAX)
			used[view->rows[i].stack] = true;
	const struct symbolizer_source source = {
	    .stacks = s->process->target.stacks,
	    .maps = s->process->target.maps,
	    .program = s->process->target.name,
	    .pid = s->process->target.pid,
	    .symbols = sheet->symbols,
	    .detail = s->item.detail,
	};
	struct symbolizer *symbolizer = symbolizer_new(profile, &source, used);
	free(used);
	if (!symbolizer)
		return -ENOMEM;
	if (s->debuginfod)
		comment_debuginfod(profile);
	int error = 0;
	for (size_t i = 0; i < view->count && !error; i++)
		error = add_row(profile, symbolizer, sheet, &view->rows[i]);
	if (!error && s->lifetimes_path && sheet->kind == HEAP_VIEW_LIVE)
		error = write_lifetimes(s, profile, symbolizer);
	symbolizer_free(symbolizer);
	profile_compute_mapping_flags(profile);
	return error;
}

static int write_sheet(const struct sheet *sheet)
{
	const struct snapshot *s = sheet->snapshot;
	struct profile *profile = profile_new();
	uint8_t *raw = NULL, *packed = NULL;
	size_t raw_bytes, packed_bytes;
	if (!profile)
		return -ENOMEM;
	int error = fill(profile, sheet);
	if (!error)
		error = encode_profile(profile, &raw, &raw_bytes);
	if (!error)
		error = gzip_encode(raw, raw_bytes,
		    s->kind == SNAPSHOT_EXIT ? GZIP_LEVEL_SMALL : GZIP_LEVEL_FAST, &packed, &packed_bytes);
	if (!error)
		error = publish(s, sheet->path, packed, packed_bytes);
	free(raw);
	free(packed);
	profile_free(profile);
	return error;
}

static int write_timeline(const struct snapshot *s)
{
	size_t bytes;
	char *text = timeline_print(s->timeline, s->unix_ns - (int64_t)s->live_scan.now_ns, &bytes);
	if (!text)
		return -ENOMEM;
	int error = publish(s, s->timeline_path, text, bytes);
	free(text);
	return error;
}

static int write_all(const struct writer_item *item)
{
	const struct snapshot *s = (const struct snapshot *)item;
	struct symbols *symbols = symbolizer_symbols(s->item.detail, s->debuginfod);
	const struct sheet sheets[] = {
	    {s, symbols, HEAP_VIEW_LIVE, &s->view, s->path, s->unix_ns, 0},
	    {s, symbols, HEAP_VIEW_DELTA, &s->delta, s->delta_path, s->unix_ns, (int64_t)s->delta_ns},
	    {s, symbols, HEAP_VIEW_PEAK, &s->peak, s->peak_path, s->peak_unix_ns, 0},
	};
	int first = symbols ? 0 : -ENOMEM;
	for (size_t i = 0; i < sizeof(sheets) / sizeof(sheets[0]); i++) {
		int error = sheets[i].path && symbols ? write_sheet(&sheets[i]) : 0;
		first = first ? first : error;
	}
	symbols_free(symbols);
	int error = s->timeline_path ? write_timeline(s) : 0;
	return first ? first : error;
}

static void discard(struct writer_item *item)
{
	struct snapshot *s = (struct snapshot *)item;
	heap_view_fini(&s->view);
	heap_view_fini(&s->peak);
	heap_view_fini(&s->delta);
	live_scan_fini(&s->live_scan);
	free(s->delta_path);
	free(s);
}

void snapshot_free(struct snapshot *s)
{
	if (s)
		discard(&s->item);
}

struct snapshot *snapshot_new(void)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->item.write = write_all;
	s->item.discard = discard;
	return s;
}

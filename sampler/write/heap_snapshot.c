/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/heap_snapshot.h"

#include "sampler/books/walked.h"
#include "sampler/intake/target_plan.h"

#include "pprof/model/drop_frames.h"
#include "pprof/model/origin.h"
#include "pprof/model/sample_types.h"
#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "sampler/write/profile_job.h"
#include "sampler/write/resident_watch.h"
#include "sampler/write/scheduler.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One of the profiles of a snapshot. */
struct heap_job {
	struct profile_job base; /* first */
	enum heap_view_kind kind;
	const struct heap_view *view;
	int64_t unix_ns, duration_ns;
};

/* ---- comments */

const char *heap_snapshot_why_missing(const struct heap_snapshot *heap_snapshot)
{
	return heap_snapshot->rings_were_full ? "no room in the rings" : "not dumped by the kernel";
}

/* For a delta: the other counts of samples are not known by interval. */
static void comment_interval(struct profile *profile, const struct heap_view *delta)
{
	profile_job_comment(profile,
	    "samples: %" PRIu64 " taken, %" PRIu64 " lost stacks, " ORIGIN_OF_INTERVAL,
	    delta->allocated.samples, delta->lost_alloc.samples);
}

static void comment_losses(
    struct profile *profile, const struct heap_snapshot *heap_snapshot, const struct heap_view *view)
{
	const struct process_counters *counters = &heap_snapshot->process->counters;
	const struct region_place *place =
	    region_place(heap_snapshot->process->run->region, heap_snapshot->process->place);

	const struct {
		const char *how;
		uint64_t count;
	} backends[] = {{"walked by the hook", counters->walked}, {"by uprobe", counters->by_uprobe},
	    {"by breakpoint", counters->by_breakpoint}, {"copied by the hook", counters->copied}};
	struct profile_job_text text;
	if (!profile_job_text_open(&text))
		return;
	fprintf(text.out, "samples: %" PRIu64 " taken, %" PRIu64 " lost stacks",
	    heap_snapshot->view.allocated.samples,
	    heap_snapshot->view.lost_alloc.samples + counters->before_restart);
	if (view->lost_inherited)
		fprintf(text.out, ", " ORIGIN_LOST_INHERITED " %" PRIu64, view->lost_inherited);
	if (counters->before_restart)
		fprintf(text.out, ", sampled before restart %" PRIu64, counters->before_restart);
	for (uint32_t i = 0; i < REGION_LOSS_COUNT; i++) {
		struct tally tally = region_read_tally(&place->lost[i]);

		if (tally.samples)
			fprintf(
			    text.out, ", %s %" PRIu64, region_loss_name((enum region_loss)i), tally.samples);
	}
	if (heap_snapshot->dumps_missing)
		fprintf(text.out, ", %s %" PRIu64, heap_snapshot_why_missing(heap_snapshot),
		    heap_snapshot->dumps_missing);
	if (counters->not_dumped)
		fprintf(text.out, ", walked but never dumped %" PRIu64, counters->not_dumped);
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
		if (backends[i].count)
			fprintf(text.out, ", %s %" PRIu64, backends[i].how, backends[i].count);
	const struct walked_counters walked = walked_counters(heap_snapshot->process->run);
	if (walked.compared)
		fprintf(text.out, " (of all its processes compared %" PRIu64 ", wrong %" PRIu64 ")",
		    walked.compared, walked.different);
	if (walked.by_frames)
		fprintf(text.out, ", stacks known by the hook alone %" PRIu64, walked.by_frames);
	if (counters->no_room + counters->inherited_no_room)
		fprintf(
		    text.out, ", no memory for %" PRIu64, counters->no_room + counters->inherited_no_room);
	profile_job_print_outcomes(text.out, counters->outcome);
	profile_job_text_add(&text, profile);
}

/* These blocks are in the profiles of the ancestors too, so the errors are not independent: see
 * pprof/analysis/shared_samples.h. */
static void comment_inherited(
    struct profile *profile, const struct process *process, const struct heap_view *view)
{
	struct profile_job_text text;

	if (!view->inherited.samples || !profile_job_text_open(&text))
		return;
	fprintf(text.out, "inherited by fork: %.0f +- %.0f of these bytes", view->inherited.bytes,
	    sqrt(view->inherited.bytes_variance));
	for (uint32_t i = process->ancestor_count; i > 0; i--)
		fprintf(text.out, "%s%d", i == process->ancestor_count ? ", sampled in pid " : " or ",
		    (int)process->ancestors[i - 1]);
	profile_job_text_add(&text, profile);
}

static void comment_lifetimes(struct profile *profile, const struct heap_snapshot *heap_snapshot)
{
	const struct lifetime *all = &heap_snapshot->lifetimes;
	uint64_t unseen = heap_snapshot->frees_missing;
	struct profile_job_text text;

	if ((!all->samples && !unseen) || !profile_job_text_open(&text))
		return;
	double share = all->objects > 0 ? 100 / all->objects : 0;
	fprintf(text.out,
	    "lifetimes: of %.0f freed objects (%" PRIu64
	    " samples) %.1f%% were temporary (freed within %g ms by the "
	    "allocating thread), %.1f%% were freed by another thread",
	    all->objects, all->samples, all->temporary_objects * share,
	    (double)heap_options(heap_snapshot->process->heap)->temporary_ns / 1e6,
	    all->other_thread_objects * share);
	if (unseen)
		fprintf(text.out, "; %" PRIu64 " frees are missing from this", unseen);
	profile_job_text_add(&text, profile);
}

/* Resident memory was not read at the peak. */
static void comment_resident(
    struct profile *profile, const struct heap_snapshot *heap_snapshot, const struct heap_job *job)
{
	char text[512];

	if (job->kind == HEAP_VIEW_PEAK || !heap_snapshot->resident.newest.time_ns)
		return;
	resident_text_comment(&heap_snapshot->resident.newest, text, sizeof(text));
	profile_add_comment(profile, text);
}

static void comment_peak(
    struct profile *profile, const struct heap_snapshot *heap_snapshot, const struct heap_job *job)
{
	time_t seconds = (time_t)(job->unix_ns / 1000000000);
	struct tm tm;
	char when[64] = "", missing[64] = "";
	const char *end =
	    strncmp(heap_snapshot->base.cause, "exit, ", 6) == 0 ? heap_snapshot->base.cause + 6 : NULL;

	if (gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	if (heap_snapshot->peak_missing)
		snprintf(missing, sizeof(missing), "; %" PRId64 " of its samples are missing",
		    heap_snapshot->peak_missing);
	profile_job_comment(profile, "snapshot: peak, the heap at its largest%s (%s.%03dZ), written %s %s%s",
	    end ? "" : " so far", when, (int)(job->unix_ns / 1000000 % 1000), end ? "when" : "with",
	    end ? end : heap_snapshot->base.cause, missing);
}

static void comment_cause(
    struct profile *profile, const struct heap_snapshot *heap_snapshot, const struct heap_job *job)
{
	if (job->kind == HEAP_VIEW_PEAK)
		comment_peak(profile, heap_snapshot, job);
	else if (job->kind == HEAP_VIEW_DELTA)
		profile_job_comment(profile,
		    "snapshot: delta, what was allocated in the %.3f s before %s; in use is what is "
		    "left of that",
		    (double)job->duration_ns / 1e9, heap_snapshot->base.cause);
	else
		profile_job_comment(profile, "snapshot: %s", heap_snapshot->base.cause);
}

/* Blocks that are older than the attachment are not in the books. */
static void comment_attached(struct profile *profile, const struct program_run *run)
{
	char bytes[AMOUNT_BYTES];

	if (run->origin.attached_pid)
		profile_job_comment(profile,
		    "attached: %.1f s after the start; about %s of resident memory are older",
		    (double)run->origin.attached_after_ns / 1e9,
		    amount_bytes((double)run->origin.attached_rss_bytes, bytes));
	else if (run->origin.offered && run->origin.offered_after_ns)
		profile_job_comment(profile, ORIGIN_TAKEN_OVER "%.1f s after the start",
		    (double)run->origin.offered_after_ns / 1e9);
	else if (run->origin.offered)
		profile_job_comment(profile, ORIGIN_TAKEN_OVER "from an earlier daemon");
	if (run->unfollowed.count)
		profile_job_comment(profile,
		    "not followed: %s%" PRIu64 " programs that forked children executed, the last %s; "
		    "only a process that is attached to is recorded",
		    run->unfollowed.seen_capacity ? "at least " : "", run->unfollowed.count,
		    run->unfollowed.last);
}

static void comment_period(struct profile *profile, const struct heap_snapshot *heap_snapshot)
{
	char present[AMOUNT_BYTES], bytes[AMOUNT_BYTES], when[64] = "";
	const time_t seconds = (time_t)(heap_snapshot->process->run->period.lowered_unix_ns / 1000000000);
	struct tm tm;

	if (!heap_snapshot->present_period_bytes ||
	    heap_snapshot->present_period_bytes >= heap_snapshot->period_bytes)
		return;
	if (seconds && gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), " at %Y-%m-%dT%H:%M:%SZ", &tm);
	profile_job_comment(profile,
	    "the period was lowered to %s%s: that of the profile is the largest before, %s",
	    amount_bytes((double)heap_snapshot->present_period_bytes, present), when,
	    amount_bytes((double)heap_snapshot->period_bytes, bytes));
}

static void add_comments(
    struct profile *profile, const struct heap_snapshot *heap_snapshot, const struct heap_job *job)
{
	static const char *const when[] = {
	    [HEAP_VIEW_LIVE] = "", [HEAP_VIEW_PEAK] = " at the peak", [HEAP_VIEW_DELTA] = " of that"};
	const struct heap_estimate *inuse = &job->view->inuse;
	const struct region *region = heap_snapshot->process->run->region;
	uint64_t placeless = region_placeless(region), not_cut_off = region_not_cut_off(region),
	         not_afforded = region_not_afforded(region);

	comment_cause(profile, heap_snapshot, job);
	comment_attached(profile, heap_snapshot->process->run);
	if (job->kind == HEAP_VIEW_DELTA)
		comment_interval(profile, job->view);
	else
		comment_losses(profile, heap_snapshot, job->view);
	if (placeless)
		profile_job_comment(
		    profile, "not profiled: %" PRIu64 " forked children without a free place", placeless);
	if (not_cut_off)
		profile_job_comment(profile,
		    "not profiled since they changed their user id: %" PRIu64
		    " forked children that could not be cut off from the stacks of others",
		    not_cut_off);
	if (not_afforded)
		profile_job_comment(profile,
		    ORIGIN_LIMITED
		    "%" PRIu64
		    " processes, whose limit leaves no room for heaptap's; what was in use then is shown as "
		    "in use",
		    not_afforded);
	profile_job_comment(profile,
	    "in use%s: %.0f +- %.0f bytes, %.0f +- %.0f objects (one standard error)", when[job->kind],
	    inuse->bytes, sqrt(inuse->bytes_variance), inuse->objects, sqrt(inuse->objects_variance));
	comment_inherited(profile, heap_snapshot->process, job->view);
	comment_lifetimes(profile, heap_snapshot);
	comment_resident(profile, heap_snapshot, job);
	profile_add_comment(profile, heap_snapshot->session);
	comment_period(profile, heap_snapshot);
	if (heap_snapshot->trouble[0])
		profile_add_comment(profile, heap_snapshot->trouble);
	if (heap_snapshot->process->target.plan && heap_snapshot->process->target.plan->labels[0])
		profile_add_comment(profile, heap_snapshot->process->target.plan->labels);
}

static void describe(struct profile *profile, const struct snapshot *snapshot, const struct profile_job *base)
{
	const struct heap_snapshot *heap_snapshot = (const struct heap_snapshot *)snapshot;
	const struct heap_job *job = (const struct heap_job *)base;

	for (size_t i = 0; i < SAMPLE_TYPE_COUNT; i++)
		profile_add_sample_type(profile, sample_types[i].name, sample_types[i].unit);
	profile_set_default_sample_type(profile,
	    sample_types[job->kind == HEAP_VIEW_DELTA ? SAMPLE_TYPE_ALLOC_SPACE : SAMPLE_TYPE_INUSE_SPACE]
	        .name);
	profile_set_period(profile, "space", "bytes", (int64_t)heap_snapshot->period_bytes);
	profile_set_time(profile, job->unix_ns, job->duration_ns);
	profile_set_drop_frames(profile, DROP_FRAMES_HEAP);
	add_comments(profile, heap_snapshot, job);
}

/* ---- samples */

static int64_t rounded(uint64_t value, int shift)
{
	return (int64_t)((value >> shift) + (value >> (shift - 1) & 1));
}

enum { ROW_LABELS = 9 };

static size_t row_labels(
    const struct process *process, const struct heap_view_row *row, struct profile_label labels[ROW_LABELS])
{
	const struct threads *threads = process->target.threads;
	pid_t origin = process_origin_pid(process, row->key.origin);
	size_t count = 0;

	if (row->inherited)
		labels[count++] = (struct profile_label){.key = "inherited", .str = "yes"};
	if (row->inherited && origin > 0) /* else the origin is unknown */
		labels[count++] = (struct profile_label){.key = ORIGIN_LABEL_FROM, .num = origin};
	if (row->key.mapped)
		labels[count++] = (struct profile_label){.key = "alloc_fn", .str = "mmap"};
	if (row->key.tid) {
		const char *name = threads_name(threads, row->key.tid);

		labels[count++] = (struct profile_label){.key = "thread_id", .num = row->key.tid};
		if (name)
			labels[count++] = (struct profile_label){.key = "thread_name", .str = name};
	}
	if (row->age != HEAP_VIEW_NO_AGE)
		labels[count++] = (struct profile_label){.key = "age", .str = lifetime_class_name(row->age)};
	if (row->temporary)
		labels[count++] = (struct profile_label){.key = "lifetime", .str = "temporary"};
	if (row->key.size_class >= 1 && row->key.size_class < 63)
		labels[count++] = (struct profile_label){
		    .key = "size", .num = (int64_t)1 << (row->key.size_class - 1), .unit = "bytes"};
	if (row->key.backend)
		labels[count++] = (struct profile_label){
		    .key = "backend", .str = backend_name((enum backend)row->key.backend)};
	return count;
}

static int add_row(struct profile *profile, struct symbolizer *symbolizer, const struct process *process,
    const struct heap_view_row *row)
{
	const uint32_t *locations;
	uint32_t lost;
	size_t depth = 1;

	if (row->key.stack == UINT32_MAX) {
		lost = symbolizer_marker(symbolizer, "[lost stack]");
		locations = &lost;
	} else {
		depth = symbolizer_stack(symbolizer, row->key.stack, row->key.mapped, &locations);
	}
	const int64_t values[SAMPLE_TYPE_COUNT] = {
	    [SAMPLE_TYPE_ALLOC_OBJECTS] = rounded(row->alloc.objects_q16, WEIGHT_OBJECTS_SHIFT),
	    [SAMPLE_TYPE_ALLOC_SPACE] = rounded(row->alloc.bytes_q8, WEIGHT_BYTES_SHIFT),
	    [SAMPLE_TYPE_INUSE_OBJECTS] = rounded(row->inuse.objects_q16, WEIGHT_OBJECTS_SHIFT),
	    [SAMPLE_TYPE_INUSE_SPACE] = rounded(row->inuse.bytes_q8, WEIGHT_BYTES_SHIFT),
	};
	/* The mean size of the row's blocks, which Go writes too: the estimate of bytes by that of objects.
	 * */
	bool allocated = values[SAMPLE_TYPE_ALLOC_OBJECTS] > 0;
	int64_t objects = values[allocated ? SAMPLE_TYPE_ALLOC_OBJECTS : SAMPLE_TYPE_INUSE_OBJECTS];
	int64_t bytes = values[allocated ? SAMPLE_TYPE_ALLOC_SPACE : SAMPLE_TYPE_INUSE_SPACE];
	struct profile_label labels[ROW_LABELS + 1] = {
	    {.key = "bytes", .num = objects > 0 ? (bytes + objects / 2) / objects : bytes, .unit = "bytes"},
	};
	size_t count = 1 + row_labels(process, row, labels + 1);
	return profile_add_sample(profile, locations, depth, values, labels, count);
}

static void mark_stacks(const struct profile_job *base, bool *used)
{
	const struct heap_view *view = ((const struct heap_job *)base)->view;

	for (size_t i = 0; i < view->count; i++)
		if (view->rows[i].key.stack != UINT32_MAX)
			used[view->rows[i].key.stack] = true;
}

static int fill_rows(struct profile *profile, struct symbolizer *symbolizer, const struct snapshot *snapshot,
    const struct profile_job *base)
{
	const struct heap_snapshot *heap_snapshot = (const struct heap_snapshot *)snapshot;
	const struct heap_job *job = (const struct heap_job *)base;
	int error = 0;

	for (size_t i = 0; i < job->view->count && !error; i++)
		error = add_row(profile, symbolizer, heap_snapshot->process, &job->view->rows[i]);
	heap_snapshot_unseen_comment(profile, &heap_snapshot->unseen, job->view, symbolizer);
	return error;
}

/* ---- files */

static int write_all(const struct writer_item *item, void **shared)
{
	static const struct profile_job_kind kind = {
	    .describe = describe, .mark_stacks = mark_stacks, .fill_rows = fill_rows};
	const struct heap_snapshot *heap_snapshot = (const struct heap_snapshot *)item;
	const struct heap_job live = {{&kind, heap_snapshot->path}, HEAP_VIEW_LIVE, &heap_snapshot->view,
	    heap_snapshot->base.unix_ns, 0};
	const struct heap_job delta = {{&kind, heap_snapshot->delta_path}, HEAP_VIEW_DELTA,
	    &heap_snapshot->delta, heap_snapshot->base.unix_ns, (int64_t)heap_snapshot->delta_ns};
	const struct heap_job peak = {{&kind, heap_snapshot->peak_path}, HEAP_VIEW_PEAK, &heap_snapshot->peak,
	    heap_snapshot->peak_unix_ns, 0};
	const struct profile_job *const jobs[] = {&live.base, &delta.base, &peak.base};

	return profile_jobs_write(&heap_snapshot->base, jobs, sizeof(jobs) / sizeof(jobs[0]), shared);
}

static void discard(struct writer_item *item)
{
	struct heap_snapshot *heap_snapshot = (struct heap_snapshot *)item;

	heap_view_fini(&heap_snapshot->view);
	heap_view_fini(&heap_snapshot->peak);
	heap_view_fini(&heap_snapshot->delta);
	free(heap_snapshot->peak_path);
	free(heap_snapshot->delta_path);
	free(heap_snapshot);
}

struct heap_snapshot *heap_snapshot_new(void)
{
	struct heap_snapshot *heap_snapshot = calloc(1, sizeof(*heap_snapshot));

	if (!heap_snapshot)
		return NULL;
	heap_snapshot->base.item.write = write_all;
	heap_snapshot->base.item.discard = discard;
	return heap_snapshot;
}

/* ---- the peak */

/* Half of the least `days` of a store. */
static const uint64_t old_ns = 12 * 3600 * UINT64_C(1000000000);

/* Does the file need a new name? Only in a store, which removes files by the time in their names. */
static bool is_old(const struct scheduler *scheduler, const struct peak_file *file)
{
	return file->path && scheduler_setup(scheduler)->reserve &&
	    clock_now_ns() - file->reserved_ns >= old_ns;
}

/* Returns a copy, because the next snapshot may make a new path. NULL if no path could be made, which was
 * logged. */
static char *path_of(
    const struct scheduler *scheduler, const struct target *target, struct peak_file *file, bool old)
{
	if (!file->path || old) {
		char *path = scheduler_reserve_beside(scheduler, target, "peak");

		if (path) { /* else the old path is used */
			free(file->path);
			file->path = path;
			file->reserved_ns = clock_now_ns();
		}
	}
	return file->path ? strdup(file->path) : NULL;
}

void heap_snapshot_add_peak(const struct scheduler *scheduler, struct heap_snapshot *snapshot,
    struct snapshot_series *series, const struct live_scan *scan)
{
	struct peak_file *file = &series->heap.peak;
	const bool old = is_old(scheduler, file);

	if (old)
		file->order = 0; /* no file has the new name yet */
	if (!scan->peak_order ||
	    (snapshot->base.kind == SNAPSHOT_NUMBERED && scan->peak_order == file->order) ||
	    heap_view_make(&snapshot->peak, HEAP_VIEW_PEAK, snapshot->process->heap, scan) != 0)
		return;
	snapshot->peak_order = scan->peak_order;
	snapshot->peak_path = path_of(scheduler, series->target, file, old);
	snapshot->peak_unix_ns = snapshot->base.unix_ns - (int64_t)(scan->now_ns - scan->peak_ns);
	snapshot->peak_missing = scan->peak_missing;
}

void heap_snapshot_peak_written(struct snapshot_series *series, const struct heap_snapshot *snapshot)
{
	if (snapshot->peak_path)
		series->heap.peak.order = snapshot->peak_order;
}

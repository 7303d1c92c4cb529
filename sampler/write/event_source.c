/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/event_source.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/books/event_process.h"
#include "sampler/books/process_life.h"
#include "sampler/perf/features.h"
#include "sampler/write/end_phrase.h"
#include "sampler/write/profile_job.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)EVENTS_MAX <= (int)SNAPSHOT_FILES, "a file for each event");

enum {
	SHARE_PERCENT = 90, /* if samples stand for less than this part of the count, the summary says so */
	OTHERS_SAID = 8,    /* processes started by COMMAND whose events the user is shown */
};

/* The profile of one event. */
struct event_job {
	struct profile_job base;   /* first; the path is owned */
	const struct event *event; /* borrowed */
	struct event_row *rows;
	size_t count;
	struct event_row total;         /* of the rows */
	struct event_row sum;           /* of all processes of the session */
	struct counter_totals counters; /* of all processes, as the kernel counted */
	uint64_t throttled;
	/* Lost samples. Only if no other process was sampled: else it is not known whose samples were
	 * lost. */
	uint64_t lost_here;
};

struct event_snapshot {
	struct snapshot base; /* first */
	struct event_process *subject;
	uint64_t duration_ns, bad;
	struct event_job jobs[EVENTS_MAX];
	size_t job_count;
};

/* The factor by which the rows of an event are scaled up because the kernel counted it only part of the time.
 */
static double event_job_scale(const struct event_job *job)
{
	/* Only hardware counters are multiplexed. */
	return job->event->kind == EVENT_HARDWARE
	    ? event_scale(job->counters.enabled_ns, job->counters.running_ns)
	    : 1;
}

/* ---- comments */

static void comment_event(struct profile *profile, const struct event_job *job)
{
	const struct event *event = job->event;
	char rate[64];

	event_describe_rate(event, rate, sizeof(rate));
	profile_job_comment(profile, "event: %s, %s; %s", event->text, rate,
	    event->part[0].exclude_user          ? "the kernel's side only"
	        : !event->part[0].exclude_kernel ? "the program's side and the kernel's"
	        : event->kernel_refused          ? FEATURES_USER_SIDE
	                                         : "the program's side only");
}

static void comment_samples(
    struct profile *profile, const struct event_snapshot *event_snapshot, const struct event_job *job)
{
	const uint64_t *outcome = event_snapshot->subject->outcome[job - event_snapshot->jobs];
	struct profile_job_text text;

	if (!profile_job_text_open(&text))
		return;
	fprintf(text.out, "samples: %" PRIu64 " taken", job->total.samples);
	profile_job_print_outcomes(text.out, outcome);
	if (event_snapshot->subject->no_room)
		fprintf(
		    text.out, ", no memory for %" PRIu64 " of all events", event_snapshot->subject->no_room);
	profile_job_text_add(&text, profile);
}

/* What the kernel counted, and what the samples stand for. The difference was lost or throttled, or belongs
 * to threads that ended before their first sample. */
static void comment_counts(
    struct profile *profile, const struct event_snapshot *event_snapshot, const struct event_job *job)
{
	const struct counter_totals *counters = &job->counters;
	const char *unit = job->event->kind == EVENT_CLOCK ? " ns" : "";
	char lost[64] = "an unknown number";

	if (counters->lost_known)
		snprintf(lost, sizeof(lost), "%" PRIu64, counters->lost);
	profile_job_comment(profile,
	    "of all processes: the kernel counted %" PRIu64 "%s, samples stand for %" PRIu64
	    "%s (%.2f%%); samples lost for want "
	    "of room: %s; held back by the kernel %" PRIu64 " times; %" PRIu64 " bad records",
	    counters->counted, unit, job->sum.value, unit,
	    counters->counted ? 100 * (double)job->sum.value / (double)counters->counted : 100.0, lost,
	    job->throttled, event_snapshot->bad);
	if (event_job_scale(job) > 1)
		profile_job_comment(profile,
		    "multiplexed: counted %.2f%% of the time, values are scaled by %.4f",
		    100 / event_job_scale(job), event_job_scale(job));
	if (counters->cpus_counted < counters->cpus && job->event->cpu < 0)
		profile_job_comment(profile,
		    "counted on %u of %u processors: the others do not have this event, and the time on them "
		    "is in no number",
		    counters->cpus_counted, counters->cpus);
	if (counters->incomplete)
		profile_add_comment(profile,
		    "after 2 s it was open whether each thread is counted: threads were being created all "
		    "the time, or one never ran; some may be in no number");
}

static void comment_faults(struct profile *profile, const struct event_job *job)
{
	if (job->event->kind != EVENT_FAULT)
		return;
	profile_add_comment(profile,
	    "resident: pages that came when they were first touched, with their size; not what is resident "
	    "now: munmap and "
	    "madvise are not seen, a page that is copied after fork() or swapped in again counts again, and "
	    "one fault may map "
	    "several pages of a file");
	if (job->event->part[0].exclude_kernel)
		profile_add_comment(profile,
		    "resident: pages that the kernel touches first, for read() into fresh memory and the "
		    "like, are not seen");
}

/* ---- samples */

static void fill_values(const struct event_job *job, const struct event_row *row, int64_t values[2])
{
	double scale = event_job_scale(job);
	int64_t value = scale > 1 ? (int64_t)llround((double)row->value * scale) : (int64_t)row->value;
	bool clock = job->event->kind == EVENT_CLOCK;

	values[0] = clock ? (int64_t)row->samples : value;
	values[1] = clock ? value : (int64_t)row->bytes;
}

static int add_row(struct profile *profile, struct symbolizer *symbolizer, const struct threads *threads,
    const struct event_job *job, const struct event_row *row)
{
	const uint32_t *locations;
	int64_t values[2];
	size_t depth = symbolizer_stack(symbolizer, row->stack, false, &locations);
	const char *name = row->tid ? threads_name(threads, row->tid) : NULL;
	const struct profile_label labels[] = {
	    {.key = "thread_id", .num = row->tid},
	    {.key = "thread_name", .str = name},
	};

	fill_values(job, row, values);
	return profile_add_sample(profile, locations, depth, values, labels, !row->tid ? 0 : name ? 2 : 1);
}

static int add_lost(struct profile *profile, struct symbolizer *symbolizer, const struct event_job *job)
{
	uint64_t each =
	    job->event->hz && job->total.samples ? job->total.value / job->total.samples : job->event->period;
	const struct event_row row = {.samples = job->lost_here,
	    .value = job->lost_here * each,
	    .bytes = job->event->kind == EVENT_FAULT ? job->lost_here * each * (uint64_t)sysconf(_SC_PAGESIZE)
	                                             : 0};
	uint32_t location = symbolizer_marker(symbolizer, STACK_LOST_SAMPLES);
	int64_t values[2];

	fill_values(job, &row, values);
	return profile_add_sample(profile, &location, 1, values, NULL, 0);
}

static void set_types(
    struct profile *profile, const struct event_snapshot *event_snapshot, const struct event_job *job)
{
	const struct event *event = job->event;
	uint64_t period =
	    event->hz ? job->total.samples ? job->total.value / job->total.samples : 1 : event->period;
	bool clock = event->kind == EVENT_CLOCK;

	if (clock)
		profile_add_sample_type(profile, "samples", "count");
	profile_add_sample_type(profile, event->type, clock ? "nanoseconds" : "count");
	if (event->kind == EVENT_FAULT)
		profile_add_sample_type(profile, "resident", "bytes");
	profile_set_default_sample_type(profile, event->kind == EVENT_FAULT ? "resident" : event->type);
	profile_set_period(profile, event->type, clock ? "nanoseconds" : "count", (int64_t)period);
	profile_set_time(profile, event_snapshot->base.unix_ns, (int64_t)event_snapshot->duration_ns);
}

static void describe(struct profile *profile, const struct snapshot *snapshot, const struct profile_job *base)
{
	const struct event_snapshot *event_snapshot = (const struct event_snapshot *)snapshot;
	const struct event_job *job = (const struct event_job *)base;

	set_types(profile, event_snapshot, job);
	profile_job_comment(profile, "snapshot: %s", snapshot->cause);
	comment_event(profile, job);
	comment_samples(profile, event_snapshot, job);
	comment_counts(profile, event_snapshot, job);
	comment_faults(profile, job);
}

static void mark_stacks(const struct profile_job *base, bool *used)
{
	const struct event_job *job = (const struct event_job *)base;

	for (size_t i = 0; i < job->count; i++)
		used[job->rows[i].stack] = true;
}

static int fill_rows(struct profile *profile, struct symbolizer *symbolizer, const struct snapshot *snapshot,
    const struct profile_job *base)
{
	const struct event_job *job = (const struct event_job *)base;
	int error = 0;

	for (size_t i = 0; i < job->count && !error; i++)
		error = add_row(profile, symbolizer, snapshot->target->threads, job, &job->rows[i]);
	return !error && job->lost_here ? add_lost(profile, symbolizer, job) : error;
}

static int write_all(const struct writer_item *item, void **shared)
{
	const struct event_snapshot *event_snapshot = (const struct event_snapshot *)item;
	const struct profile_job *jobs[EVENTS_MAX];

	for (size_t i = 0; i < event_snapshot->job_count; i++)
		jobs[i] = &event_snapshot->jobs[i].base;
	return profile_jobs_write(&event_snapshot->base, jobs, event_snapshot->job_count, shared);
}

static void discard(struct writer_item *item)
{
	struct event_snapshot *event_snapshot = (struct event_snapshot *)item;

	for (size_t i = 0; i < event_snapshot->job_count; i++) {
		free((char *)event_snapshot->jobs[i].base.path);
		free(event_snapshot->jobs[i].rows);
	}
	free(event_snapshot);
}

/* Returns 0 or -ENOMEM. */
static int set_path(struct event_snapshot *event_snapshot, size_t event, const char *path)
{
	static const struct profile_job_kind kind = {.allocator_stays = true,
	    .describe = describe,
	    .mark_stacks = mark_stacks,
	    .fill_rows = fill_rows};
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	event_snapshot->jobs[event].base.kind = &kind;
	event_snapshot->jobs[event].base.path = copy;
	if (!event_snapshot->base.path[0])
		event_snapshot->base.path = copy;
	return 0;
}

/* NULL if out of memory. Its item writes every profile, and returns 0 or -errno of the first that failed. */
static struct event_snapshot *new_snapshot(void)
{
	struct event_snapshot *event_snapshot = calloc(1, sizeof(*event_snapshot));

	if (!event_snapshot)
		return NULL;
	event_snapshot->base.item.write = write_all;
	event_snapshot->base.item.discard = discard;
	event_snapshot->base.path = "";
	return event_snapshot;
}

/* ---- what the user reads */

static void print_job(const struct event_job *job)
{
	char value[64], bytes[48] = "", size[AMOUNT_BYTES], share[80] = "", lost[32] = "an unknown number";
	double total = (double)job->total.value * event_job_scale(job);

	if (job->event->kind == EVENT_CLOCK)
		snprintf(value, sizeof(value), "%.3f s", total / 1e9);
	else
		snprintf(value, sizeof(value), "%.0f", total);
	if (job->event->kind == EVENT_FAULT)
		snprintf(bytes, sizeof(bytes), ", %s", amount_bytes((double)job->total.bytes, size));
	if (job->counters.counted && job->sum.value < job->counters.counted / 100 * SHARE_PERCENT)
		snprintf(share, sizeof(share), ", samples stand for %.1f%% of what the kernel counted",
		    100 * (double)job->sum.value / (double)job->counters.counted);
	if (job->counters.lost_known)
		snprintf(lost, sizeof(lost), "%" PRIu64, job->counters.lost);
	log_line("  %s %s%s in %" PRIu64 " samples; %s lost%s: %s", job->event->label, value, bytes,
	    job->total.samples, lost, share, job->base.path);
}

static void print_snapshot(const struct snapshot *snapshot)
{
	const struct event_snapshot *event_snapshot = (const struct event_snapshot *)snapshot;
	const struct target *target = snapshot->target;
	char end[END_PHRASE_BYTES];

	end_phrase_plain(target, end, sizeof(end));
	log_line("%s (pid %d) %s; events:", target->title, (int)target->pid, end);
	for (size_t i = 0; i < event_snapshot->job_count; i++)
		if (event_snapshot->jobs[i].base.path)
			print_job(&event_snapshot->jobs[i]);
}

/* ---- taking */

static int copy_rows(struct event_job *job, const struct event_book *book)
{
	job->count = event_book_count(book);
	job->total = event_book_total(book);
	job->rows = calloc(job->count + 1, sizeof(*job->rows));
	if (!job->rows)
		return -ENOMEM;
	if (job->count)
		memcpy(job->rows, event_book_rows(book), job->count * sizeof(*job->rows));
	return 0;
}

static int fill_job(const struct event_source *source, struct event_snapshot *snapshot, size_t event,
    const struct snapshot_order *order)
{
	struct event_job *job = &snapshot->jobs[event];
	const struct event_registry *registry = source->registry;
	const struct target *target = &snapshot->subject->target;
	const struct event_book *book = snapshot->subject->books[event];
	char name[EVENT_TEXT_BYTES + 96], path[PATH_MAX];

	job->event = &registry->setup.events[event];
	counters_read(registry->counters, event, &job->counters);
	job->sum = registry->sum[event];
	job->throttled = registry->throttled[event];
	job->lost_here = registry->sampled <= 1 ? job->counters.lost : 0;
	bool of_command = target->command && target->end != TARGET_EXEC;
	if (!book && !(order->kind == SNAPSHOT_EXIT && of_command))
		return 0;
	int error = book ? copy_rows(job, book) : 0;
	snprintf(name, sizeof(name), "%s-%s", job->event->label, order->name);
	if (!error)
		error = scheduler_reserve(source->base.scheduler, target, name, path, sizeof(path));
	return error ? error : set_path(snapshot, event, path);
}

static int take(struct snapshot_source *base, struct target *target, const struct snapshot_order *order,
    struct snapshot **snapshot)
{
	const struct event_source *source = (const struct event_source *)base;
	const struct process *heap = source->heaps ? process_life_find(source->heaps, target->pid) : NULL;
	struct event_snapshot *event_snapshot = new_snapshot();

	if (!event_snapshot)
		return -ENOMEM;
	event_snapshot->subject = (struct event_process *)target;
	event_process_look(event_snapshot->subject);
	/* Takes the names of its heap profiles, unless the heap is of an earlier program. */
	if (heap && strcmp(heap->target.name, target->name) == 0) {
		memcpy(target->title, heap->target.title, sizeof(target->title));
		memcpy(target->full_name, heap->target.full_name, sizeof(target->full_name));
		memcpy(target->called, heap->target.called, sizeof(target->called));
	}
	event_snapshot->base.unix_ns = clock_unix_ns();
	event_snapshot->duration_ns = clock_now_ns() - target->start_ns;
	event_snapshot->bad = source->registry->bad;
	event_snapshot->job_count = source->registry->setup.event_count;
	int error = 0;
	for (size_t i = 0; i < event_snapshot->job_count && !error; i++)
		error = fill_job(source, event_snapshot, i, order);
	for (size_t i = 0; i < event_snapshot->job_count; i++)
		event_snapshot->base.files[event_snapshot->base.file_count++] =
		    event_snapshot->jobs[i].base.path;
	if (error)
		event_snapshot->base.item.discard(&event_snapshot->base.item);
	else
		*snapshot = &event_snapshot->base;
	return error;
}

void event_source_take(struct event_source *source, pid_t pid, const struct snapshot_order *order)
{
	event_registry_drain(source->registry);
	struct event_process *process = pid > 0 ? event_registry_find(source->registry, pid) : NULL;
	if (process && event_process_has_samples(process))
		scheduler_take_beside(&source->base, &process->target, order);
}

/* ---- what the scheduler asks */

/* If the heap of a process is profiled, its events are written together with the heap. But a heap with few
 * samples is not written at each interval, so its events are written alone. */
static bool has(const struct snapshot_source *base, const struct target *target, enum snapshot_reason reason)
{
	const struct event_source *source = (const struct event_source *)base;
	const struct process *heap = NULL;

	if (reason != SNAPSHOT_REASON_END && source->heaps)
		heap = process_life_find(source->heaps, target->pid);
	if (heap &&
	    (reason == SNAPSHOT_REASON_ASKED ||
	        scheduler_is_enough(base->scheduler, &heap->target, process_samples(heap))))
		return false;
	return event_process_has_samples((const struct event_process *)target);
}

/* Shows the user as many ended processes as he may want to read; more are only counted. */
static void written(struct snapshot_source *base, const struct snapshot *snapshot, int error)
{
	struct event_source *source = (struct event_source *)base;
	bool other = !snapshot->target->command;
	int verbosity = scheduler_setup(base->scheduler)->settings->verbosity;

	if (snapshot->kind != SNAPSHOT_EXIT || verbosity < 0)
		return;
	if (!error && (!other || verbosity > 0 || source->others < OTHERS_SAID))
		print_snapshot(snapshot);
	source->others += other;
}

uint64_t event_source_unsaid(const struct event_source *source)
{
	int verbosity = scheduler_setup(source->base.scheduler)->settings->verbosity;

	return verbosity == 0 && source->others > OTHERS_SAID ? source->others - OTHERS_SAID : 0;
}

static void release(struct snapshot_source *base, struct target *target)
{
	event_registry_release(((struct event_source *)base)->registry, (struct event_process *)target);
}

const struct snapshot_source_kind event_source_kind = {
    .has = has,
    .take = take,
    .written = written,
    .release = release,
};

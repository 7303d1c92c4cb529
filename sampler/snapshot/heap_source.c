/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/heap_source.h"

#include "pprof/profile/origin.h"
#include "pprof/text/log_line.h"
#include "sampler/heap/drain.h"
#include "sampler/heap/process_life.h"
#include "sampler/linux/clock.h"
#include "sampler/snapshot/heap_snapshot.h"
#include "sampler/snapshot/heap_trend.h"
#include "sampler/snapshot/peak.h"
#include "sampler/snapshot/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/futex.h>

/* ---- taking */

static void describe_trouble(const struct process *process, const struct snapshot_series *series,
    uint64_t now_ns, char *text, size_t text_bytes)
{
	const struct region_place *place = region_place(process->image->region, process->place);
	uint64_t paused_ns = atomic_load(&place->paused_ns), since_ns = atomic_load(&place->paused_since_ns);
	bool paused = atomic_load(&place->paused) == 1;
	int at = 0;

	text[0] = '\0';
	if (paused && now_ns > since_ns)
		paused_ns += now_ns - since_ns;
	if (series->skipped || series->failed)
		at = snprintf(text, text_bytes,
		    "snapshots before this one: %" PRIu64 " skipped, %" PRIu64 " not written",
		    series->skipped, series->failed);
	if (series->refused && at < (int)text_bytes)
		at += snprintf(text + at, text_bytes - (size_t)at,
		    "%s%" PRIu64 " snapshot requests of the program refused (more than one a second)",
		    at ? "; " : "", series->refused);
	if (paused_ns && at < (int)text_bytes)
		at += snprintf(text + at, text_bytes - (size_t)at, "%s" ORIGIN_PAUSED "%.3f s%s",
		    at ? "; " : "", (double)paused_ns / 1e9, paused ? " and is now" : "");
	uint64_t suppressed = series->thresholds ? threshold_watch_suppressed(series->thresholds) : 0;
	if (suppressed && at < (int)text_bytes)
		snprintf(text + at, text_bytes - (size_t)at,
		    "%sthresholds crossed %" PRIu64 " times without a snapshot (--on-limit)", at ? "; " : "",
		    suppressed);
}

/* The difference to the last periodic snapshot, beside this one. */
static void add_delta(const struct scheduler *scheduler, struct heap_snapshot *s, const char *name,
    const struct live_scan *live_scan)
{
	struct heap *heap = s->process->heap;
	uint64_t since_ns = heap_last_mark(heap)->time_ns;
	char delta_name[128];

	if (!since_ns)
		since_ns = s->process->target.start_ns;
	snprintf(delta_name, sizeof(delta_name), "%s-delta", name);
	s->delta_ns = live_scan->now_ns > since_ns ? live_scan->now_ns - since_ns : 1;
	if (heap_view_make(&s->delta, HEAP_VIEW_DELTA, heap, live_scan) == 0)
		s->delta_path = scheduler_claim_beside(scheduler, &s->process->target, delta_name);
	heap_mark(heap, live_scan->counted, live_scan->now_ns);
}

/* The files beside the profile. */
static void add_files(const struct heap_source *source, struct heap_snapshot *s,
    struct snapshot_series *series, const struct snapshot_request *request, const struct live_scan *live_scan)
{
	const struct scheduler *scheduler = source->base.scheduler;

	peak_add(scheduler, s, series, live_scan);
	if (scheduler_setup(scheduler)->settings->delta && request->periodic)
		add_delta(scheduler, s, request->name, live_scan);
}

/* asked: as it was before the drain. An earlier sampler may have had rings, if this one has none. */
static void note_missing(struct heap_snapshot *s, const struct registry *registry, uint64_t asked)
{
	const uint64_t came = s->process->counters.dumps;

	s->dumps_missing = registry->setup.probe->rings && asked > came ? asked - came : 0;
	s->rings_were_full = registry->setup.intake->ring_lost != 0;
}

static int add_views(struct heap_source *source, struct heap_snapshot *s, struct snapshot_series *series,
    const struct snapshot_request *request)
{
	struct process *process = s->process;
	struct live_scan live_scan;
	const uint64_t asked = process_dumps_asked(process);
	int error = live_scan_take(&live_scan, process->image->region, process->place);

	if (!error) {
		if (!process->target.closed) /* else all has been read */
			drain_image(source->registry, process->image);
		note_missing(s, source->registry, asked);
		error = heap_view_make(&s->view, HEAP_VIEW_LIVE, process->heap, &live_scan);
	}
	if (error) {
		live_scan_fini(&live_scan);
		return error;
	}
	s->base.unix_ns = clock_unix_ns();
	if (request->kind != SNAPSHOT_MEMORY)
		resident_watch_read(&series->resident, process);
	else if (process->target.readable) /* a client may ask every second: no reading out of turn */
		resident_watch_look(&series->resident, process, live_scan.now_ns,
		    source->registry->setup.intake->books.processes.count);
	s->resident = series->resident;
	snapshot_unseen_look(&s->unseen, process, &s->resident, &s->view);
	s->lifetimes = *heap_lifetimes(process->heap);
	/* of the image: of all of its processes */
	s->frees_missing = process->image->frees.lost + process->counters.frees_unknown;
	describe_trouble(process, series, live_scan.now_ns, s->trouble, sizeof(s->trouble));
	if (request->kind != SNAPSHOT_MEMORY)
		add_files(source, s, series, request, &live_scan);
	s->scan_ns = live_scan.now_ns;
	live_scan_fini(&live_scan);
	return 0;
}

static int take(struct snapshot_source *base, struct target *target, const struct snapshot_request *request,
    struct snapshot **snapshot)
{
	struct heap_source *source = (struct heap_source *)base;
	struct heap_snapshot *s = heap_snapshot_new();

	if (!s)
		return -ENOMEM;
	s->base.path = s->path;
	s->base.kind = request->kind;
	s->process = (struct process *)target;
	const uint64_t own_bytes = s->process->image->period.bytes;
	s->present_period_bytes = own_bytes ? own_bytes : source->period_bytes;
	source->describe(source->context, s->present_period_bytes, s->session, sizeof(s->session));
	int error = 0;
	if (request->kind == SNAPSHOT_MEMORY)
		snprintf(s->path, sizeof(s->path), "memory"); /* no file, and no name is used up */
	else
		error = scheduler_claim(base->scheduler, target, request->name, s->path, sizeof(s->path));
	if (!error)
		error = add_views(source, s, target->series, request);
	const uint64_t most_bytes = heap_period_bytes(s->process->heap);
	s->period_bytes = most_bytes > s->present_period_bytes ? most_bytes : s->present_period_bytes;
	if (error)
		s->base.item.discard(&s->base.item);
	else
		*snapshot = &s->base;
	return error;
}

/* ---- requests in the shared memory */

/* The snapshot was taken, or cannot be, or is refused: heaptap_snapshot() may return. */
static void answer_program(const struct process *process, const struct snapshot_series *series)
{
	struct region_place *place = region_place(process->image->region, process->place);

	if (atomic_exchange(&place->answered, series->asked_seen) != series->asked_seen)
		syscall(SYS_futex, &place->answered, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The rate is limited: otherwise a target could fill the disk. */
static bool is_allowed(const struct scheduler *scheduler, struct snapshot_series *series, uint64_t now_ns)
{
	if (snapshot_series_allows(series, now_ns))
		return true;
	if (series->refused == 1 && scheduler_setup(scheduler)->settings->verbosity >= 0)
		log_line_of(target_user(series->target),
		    "pid %d requests more than one snapshot a second: not all are taken",
		    (int)series->target->pid);
	return false;
}

/* Reads the requests in the process' place; the values are hostile, so they are only compared. */
static void read_requests(const struct scheduler *scheduler, const struct process *process,
    struct snapshot_series *series, uint64_t now_ns)
{
	struct region_place *place = region_place(process->image->region, process->place);
	uint32_t signals = atomic_load(&place->signals), asked = atomic_load(&place->asked);
	uint32_t first = series->asked_seen + 1;
	char name[REGION_NAME_BYTES], cause[128];

	if (signals != series->signals_seen && is_allowed(scheduler, series, now_ns))
		snapshot_series_want(series, "a signal to the process", NULL, 0);
	series->signals_seen = signals;
	if (asked == series->asked_seen)
		return;
	memcpy(name, place->asked_name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	snprintf(cause, sizeof(cause), "asked for by the program%s%s", name[0] ? ": " : "", name);
	series->asked_seen = asked;
	if (is_allowed(scheduler, series, now_ns))
		snapshot_series_want(series, cause, name, 0);
	else if (!series->wanted) {
		atomic_store(&place->refused, (uint64_t)first << 32 | asked);
		answer_program(process, series);
	}
}

/* ---- thresholds */

/* Without -v of the first cgroup only: who gives --on memory.high must know if nothing will come of it. */
static void tell_cgroup(
    struct heap_source *source, const struct process *process, struct threshold_watch *watch)
{
	int verbosity = scheduler_setup(source->base.scheduler)->settings->verbosity;
	struct memory_high *cgroup = threshold_watch_cgroup(watch);
	bool watched = cgroup && cgroup->answer == MEMORY_HIGH_WATCHED;
	char text[512];

	if (cgroup ? cgroup->told && cgroup->told_answer == cgroup->answer : source->cgroup_said)
		return;
	threshold_describe_memory_high(cgroup, text, sizeof(text));
	if (watched && verbosity > 0)
		log_line("--on memory.high: watching %s (pid %d)", text, (int)process->target.pid);
	else if (!watched && verbosity >= (source->cgroup_said ? 1 : 0))
		log_line("--on memory.high: no effect for pid %d: %s", (int)process->target.pid, text);
	if (cgroup) {
		cgroup->told = true;
		cgroup->told_answer = cgroup->answer;
	}
	source->cgroup_said = source->cgroup_said || !watched;
}

static struct threshold_watch *watch_of(
    const struct threshold_settings *settings, struct snapshot_series *series)
{
	if (settings->count && !series->thresholds)
		series->thresholds = threshold_watch_new(settings); /* else: is tried again */
	return series->thresholds;
}

static void look_at_thresholds(
    struct heap_source *source, const struct process *process, uint64_t now_ns, bool rarely)
{
	const struct snapshot_settings *settings = scheduler_setup(source->base.scheduler)->settings;
	struct snapshot_series *series = process->target.series;
	struct threshold_watch *watch = watch_of(&settings->thresholds, series);
	struct threshold_crossing crossing;

	if (!watch)
		return;
	const struct threshold_subject subject = {
	    .place = region_place(process->image->region, process->place),
	    .pid = process->target.readable ? process->target.pid : 0,
	    .forked = process->place != 0,
	    .before = process->was_running,
	    .cgroup = series->death.cgroup,
	    .cgroup_version = series->death.version,
	    .cgroups = &source->cgroups,
	};
	if (threshold_watch_look(watch, &subject, now_ns, series->wanted, &crossing))
		snapshot_series_want_by_rule(series, &crossing);
	if (!series->limit_said && threshold_watch_suppressed(watch)) {
		series->limit_said = true;
		if (settings->verbosity >= 0)
			log_line(
			    "pid %d crosses a threshold again within %g s (--on-limit): the next snapshot "
			    "for it comes after that, if it is still crossed",
			    (int)process->target.pid, (double)settings->thresholds.limit_ns / 1e9);
	}
	if (rarely && threshold_watch_is_about(watch, THRESHOLD_MEMORY_HIGH))
		tell_cgroup(source, process, watch);
}

/* A snapshot of the events goes with it. */
static void taken(
    struct snapshot_source *base, struct target *target, const struct snapshot_request *request, int error)
{
	const struct heap_source *source = (const struct heap_source *)base;

	if (!request->periodic)
		answer_program((const struct process *)target, target->series);
	if (!error && source->events)
		event_source_take(source->events, target->pid, request);
}

static void look_for_requests(struct snapshot_source *base, struct target *target, uint64_t now_ns)
{
	read_requests(base->scheduler, (const struct process *)target, target->series, now_ns);
}

static void look(struct snapshot_source *base, struct target *target, uint64_t now_ns, bool rarely)
{
	struct process *process = (struct process *)target;
	struct snapshot_series *series = target->series;

	if (rarely)
		heap_trend_note(series, region_place(process->image->region, process->place), now_ns);
	look_for_requests(base, target, now_ns);
	if (target->readable && !series->wanted) /* else it is read with the snapshot */
		resident_watch_look(&series->resident, process, now_ns,
		    ((struct heap_source *)base)->registry->setup.intake->books.processes.count);
	look_at_thresholds((struct heap_source *)base, process, now_ns, rarely);
}

/* ---- what the scheduler asks */

static bool has(const struct snapshot_source *base, const struct target *target, enum snapshot_reason reason)
{
	const struct process *process = (const struct process *)target;
	uint64_t samples = process_samples(process);

	/* Killed while it counted, a process may have sent more than it counted. */
	if (reason == SNAPSHOT_END && process->counters.taken > samples)
		samples = process->counters.taken;
	return reason == SNAPSHOT_REQUESTED || scheduler_is_enough(base->scheduler, target, samples) ||
	    (target->series &&
	        resident_watch_is_large(
	            &target->series->resident, process, ((const struct heap_source *)base)->period_bytes));
}

/* Of a session, which has an end. */
static void note_written(struct heap_source *source, const char *path)
{
	char *copy = source->written_count < HEAP_SOURCE_WRITTEN ? strdup(path) : NULL;

	if (copy)
		source->written[source->written_count++] = copy;
	else
		source->written_more = true;
}

void heap_source_fini(struct heap_source *source)
{
	while (source->written_count)
		free(source->written[--source->written_count]);
}

static void written(struct snapshot_series *series, const struct snapshot *snapshot, int error)
{
	const struct heap_snapshot *s = (const struct heap_snapshot *)snapshot;

	if (!error) /* else the next one tries again */
		peak_written(series, s);
	if (!error && !series->target->plan)
		note_written((struct heap_source *)series->source, s->path);
}

static void keep(struct snapshot_series *series, const struct snapshot *snapshot, size_t count)
{
	const struct heap_snapshot *s = (const struct heap_snapshot *)snapshot;

	if (!sink_has_file(snapshot->sink, s->path) &&
	    (!s->delta_path || !sink_has_file(snapshot->sink, s->delta_path)))
		return; /* what was not written pushes out nothing */
	const struct snapshot_series_file file = {(char *)s->path, s->delta_path, true, snapshot->by_a_rule};
	snapshot_series_keep(series, &file, count, snapshot->sink);
}

/* With -v the others' blocks are shown at once; COMMAND's is part of the summary. */
static void ended(struct snapshot_source *base, const struct snapshot *snapshot, int error)
{
	struct heap_source *source = (struct heap_source *)base;
	const struct target *target = snapshot->target;
	char end[PROCESS_END_BYTES];
	struct summary_row row;

	if (target->end == TARGET_ALIVE)
		snprintf(end, sizeof(end), "is running, sampling was stopped");
	else
		process_end_describe(target, &target->series->death, end, sizeof(end));
	summary_row_make(&row, (const struct heap_snapshot *)snapshot, end, error);
	if (!row.command && row.block && scheduler_setup(base->scheduler)->settings->verbosity > 0) {
		log_lines(row.block);
		if (row.path)
			log_line("  profile %s", row.path);
	}
	summary_list_add(&source->ended, &row);
}

/* Without the blocks that it had from its parent, which the parent counts. Nothing if there is no memory. */
static struct tally in_use_of_its_own(const struct process *process)
{
	struct live_scan scan;
	struct tally sum = {0};

	/* Nothing is inherited at place 0, and to read slots that were never used costs memory. */
	if (process->place == 0)
		return region_read_tally(&region_place(process->image->region, 0)->live);
	if (live_scan_take(&scan, process->image->region, process->place) != 0)
		return sum;
	for (size_t i = 0; i < scan.count; i++)
		if (scan.blocks[i].live && !(scan.blocks[i].slot.flags & SLOT_INHERITED))
			tally_count(&sum, region_weight(&scan.blocks[i].slot));
	live_scan_fini(&scan);
	return sum;
}

static void omitted(struct snapshot_source *base, const struct target *target)
{
	struct heap_source *source = (struct heap_source *)base;
	const struct process *process = (const struct process *)target;
	const struct region_place *place = region_place(process->image->region, process->place);
	struct tally at_end = in_use_of_its_own(process);
	double peak_bytes = (double)atomic_load(&place->peak_bytes_q8) / (1 << WEIGHT_BYTES_SHIFT);
	struct tally allocated = region_read_tally(&place->allocated);

	summary_list_omit(&source->ended, target, allocated, at_end, peak_bytes);
	tally_add(&source->omitted, &allocated);
	source->omitted_processes++;
	source->omitted_at_end_bytes += (double)at_end.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);
	if (scheduler_setup(base->scheduler)->settings->verbosity > 0)
		log_line_of(target_user(target), "%s (pid %d): no profile, %" PRIu64 " samples",
		    target->title, (int)target->pid, process_samples(process));
}

static const char *const drops[] = {
    [SNAPSHOT_DROP_CROWD] = "because more ended than could be written",
    [SNAPSHOT_DROP_PAUSED] = "because everything was off when they ended",
};

/* Said at most every ten seconds: there are many, or there would be none. */
static void dropped(struct snapshot_source *base, const struct target *target, enum snapshot_drop why)
{
	struct heap_source_dropped *d = &((struct heap_source *)base)->dropped[why];
	const struct process *process = (const struct process *)target;
	struct tally allocated =
	    region_read_tally(&region_place(process->image->region, process->place)->allocated);
	const uint64_t now_ns = clock_now_ns();

	tally_add(&d->allocated, &allocated);
	d->processes++;
	d->unsaid++;
	if (d->said_ns && now_ns - d->said_ns < UINT64_C(10) * CLOCK_NS_PER_S)
		return;
	log_line("%" PRIu64 " processes left no profile, %s (the last: %s, pid %d)", d->unsaid, drops[why],
	    target->title, (int)target->pid);
	d->said_ns = now_ns;
	d->unsaid = 0;
}

bool heap_source_describe_dropped(
    const struct heap_source *source, enum snapshot_drop why, char *text, size_t text_bytes)
{
	const struct heap_source_dropped *d = &source->dropped[why];

	text[0] = '\0';
	if (d->processes)
		snprintf(text, text_bytes,
		    "%" PRIu64 " processes left no profile, %s: %" PRIu64 " samples, %.0f bytes allocated",
		    d->processes, drops[why], d->allocated.samples,
		    (double)d->allocated.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT));
	return d->processes;
}

void heap_source_describe_omitted(const struct heap_source *source, char *text, size_t text_bytes)
{
	text[0] = '\0';
	if (source->omitted.samples)
		snprintf(text, text_bytes,
		    "%" PRIu64 " processes of few samples left no profile: %" PRIu64
		    " samples, %.0f bytes allocated, %.0f in use at their ends",
		    source->omitted_processes, source->omitted.samples,
		    (double)source->omitted.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT),
		    source->omitted_at_end_bytes);
}

static void release(struct snapshot_source *base, struct target *target)
{
	process_life_release(((struct heap_source *)base)->registry, (struct process *)target);
}

const struct snapshot_source_kind heap_source_kind = {
    .look = look,
    .look_for_requests = look_for_requests,
    .has = has,
    .in_memory = true,
    .grows = true,
    .take = take,
    .taken = taken,
    .written = written,
    .keep = keep,
    .ended = ended,
    .omitted = omitted,
    .dropped = dropped,
    .release = release,
};

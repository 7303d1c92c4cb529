/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/heap_source.h"

#include "pprof/model/origin.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/books/drain.h"
#include "sampler/books/process_life.h"
#include "sampler/write/heap_snapshot.h"
#include "sampler/write/snapshot_series.h"
#include "sampler/write/summary_list.h"

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
	const struct region_place *place = region_place(process->run->region, process->place);
	uint64_t paused_ns = atomic_load(&place->paused_ns), since_ns = atomic_load(&place->paused_since_ns);
	bool paused = atomic_load(&place->paused) == 1;
	int at = 0;

	text[0] = '\0';
	if (paused && now_ns > since_ns)
		paused_ns += now_ns - since_ns;
	if (series->periodic.skipped || series->failed)
		at = snprintf(text, text_bytes,
		    "snapshots before this one: %" PRIu64 " skipped, %" PRIu64 " not written",
		    series->periodic.skipped, series->failed);
	if (series->heap.refused && at < (int)text_bytes)
		at += snprintf(text + at, text_bytes - (size_t)at,
		    "%s%" PRIu64 " snapshot requests of the program refused (more than one a second)",
		    at ? "; " : "", series->heap.refused);
	if (paused_ns && at < (int)text_bytes)
		at += snprintf(text + at, text_bytes - (size_t)at, "%s" ORIGIN_PAUSED "%.3f s%s",
		    at ? "; " : "", (double)paused_ns / 1e9, paused ? " and is now" : "");
	uint64_t suppressed =
	    series->heap.thresholds ? threshold_watch_suppressed(series->heap.thresholds) : 0;
	if (suppressed && at < (int)text_bytes)
		snprintf(text + at, text_bytes - (size_t)at,
		    "%sthresholds crossed %" PRIu64 " times without a snapshot (--on-limit)", at ? "; " : "",
		    suppressed);
}

/* Adds the difference to the last periodic snapshot. */
static void add_delta(const struct scheduler *scheduler, struct heap_snapshot *heap_snapshot,
    const char *name, const struct live_scan *live_scan)
{
	struct heap *heap = heap_snapshot->process->heap;
	uint64_t since_ns = heap_last_mark(heap)->time_ns;
	char delta_name[128];

	if (!since_ns)
		since_ns = heap_snapshot->process->target.start_ns;
	snprintf(delta_name, sizeof(delta_name), "%s-delta", name);
	heap_snapshot->delta_ns = live_scan->now_ns > since_ns ? live_scan->now_ns - since_ns : 1;
	if (heap_view_make(&heap_snapshot->delta, HEAP_VIEW_DELTA, heap, live_scan) == 0)
		heap_snapshot->delta_path =
		    scheduler_reserve_beside(scheduler, &heap_snapshot->process->target, delta_name);
	heap_mark(heap, live_scan->counted, live_scan->now_ns);
}

/* Adds the profiles beside that of what is in use. */
static void add_files(const struct heap_source *source, struct heap_snapshot *heap_snapshot,
    struct snapshot_series *series, const struct snapshot_order *order, const struct live_scan *live_scan)
{
	const struct scheduler *scheduler = source->base.scheduler;

	heap_snapshot_add_peak(scheduler, heap_snapshot, series, live_scan);
	if (scheduler_setup(scheduler)->settings->delta && order->by == SNAPSHOT_BY_CLOCK)
		add_delta(scheduler, heap_snapshot, order->name, live_scan);
}

/* asked: the dumps that were asked for before the drain. Without rings of its own the sampler does not know:
 * an earlier sampler may have had some. */
static void note_missing(struct heap_snapshot *heap_snapshot, const struct registry *registry, uint64_t asked)
{
	const uint64_t came = heap_snapshot->process->counters.dumps;

	heap_snapshot->dumps_missing = registry->setup.probe->rings && asked > came ? asked - came : 0;
	heap_snapshot->rings_were_full = registry->setup.intake->ring_lost != 0;
}

static int add_views(struct heap_source *source, struct heap_snapshot *heap_snapshot,
    struct snapshot_series *series, const struct snapshot_order *order)
{
	struct process *process = heap_snapshot->process;
	struct live_scan live_scan;
	const uint64_t asked = process_dumps_asked(process);
	int error = live_scan_take(&live_scan, process->run->region, process->place);

	if (!error) {
		if (!process->target.closed) /* else everything was read before */
			drain_run(source->registry, process->run);
		note_missing(heap_snapshot, source->registry, asked);
		error = heap_view_make(&heap_snapshot->view, HEAP_VIEW_LIVE, process->heap, &live_scan);
	}
	if (error) {
		live_scan_fini(&live_scan);
		return error;
	}
	heap_snapshot->base.unix_ns = clock_unix_ns();
	if (order->kind != SNAPSHOT_MEMORY)
		resident_watch_read(&series->heap.resident, process);
	else if (process->target.readable) /* a client may ask every second */
		resident_watch_look(&series->heap.resident, process, live_scan.now_ns,
		    source->registry->setup.intake->books.processes.count);
	heap_snapshot->resident = series->heap.resident;
	heap_snapshot_unseen_look(
	    &heap_snapshot->unseen, process, &heap_snapshot->resident, &heap_snapshot->view);
	heap_snapshot->lifetimes = *heap_lifetimes(process->heap);
	/* frees_lost counts for all processes of the program run */
	heap_snapshot->frees_missing = process->run->frees.lost + process->counters.frees_unknown;
	describe_trouble(
	    process, series, live_scan.now_ns, heap_snapshot->trouble, sizeof(heap_snapshot->trouble));
	if (order->kind != SNAPSHOT_MEMORY)
		add_files(source, heap_snapshot, series, order, &live_scan);
	heap_snapshot->scan_ns = live_scan.now_ns;
	live_scan_fini(&live_scan);
	return 0;
}

static int take(struct snapshot_source *base, struct target *target, const struct snapshot_order *order,
    struct snapshot **snapshot)
{
	struct heap_source *source = (struct heap_source *)base;
	struct heap_snapshot *heap_snapshot = heap_snapshot_new();

	if (!heap_snapshot)
		return -ENOMEM;
	heap_snapshot->base.path = heap_snapshot->path;
	heap_snapshot->base.kind = order->kind;
	heap_snapshot->process = (struct process *)target;
	const uint64_t own_bytes = heap_snapshot->process->run->period.bytes;
	heap_snapshot->present_period_bytes = own_bytes ? own_bytes : source->period_bytes;
	source->describe(source->context, heap_snapshot->present_period_bytes, heap_snapshot->session,
	    sizeof(heap_snapshot->session));
	int error = 0;
	if (order->kind == SNAPSHOT_MEMORY)
		strcpy(heap_snapshot->path, "memory"); /* it is no file, so it takes no name */
	else
		error = scheduler_reserve(
		    base->scheduler, target, order->name, heap_snapshot->path, sizeof(heap_snapshot->path));
	if (!error)
		error = add_views(source, heap_snapshot, target->series, order);
	const uint64_t most_bytes = heap_period_bytes(heap_snapshot->process->heap);
	heap_snapshot->period_bytes = most_bytes > heap_snapshot->present_period_bytes
	    ? most_bytes
	    : heap_snapshot->present_period_bytes;
	if (error)
		heap_snapshot->base.item.discard(&heap_snapshot->base.item);
	else
		*snapshot = &heap_snapshot->base;
	heap_snapshot->base.files[0] = heap_snapshot->path;
	heap_snapshot->base.files[1] = heap_snapshot->delta_path;
	heap_snapshot->base.file_count = 2;
	return error;
}

/* ---- requests in the shared memory */

/* Lets heaptap_snapshot() return: the snapshot was taken, or could not be taken, or is refused. */
static void answer_program(const struct process *process, const struct snapshot_series *series)
{
	struct region_place *place = region_place(process->run->region, process->place);

	if (atomic_exchange(&place->answered, series->heap.asked_seen) != series->heap.asked_seen)
		syscall(SYS_futex, &place->answered, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* May the program request another snapshot? It may have a burst of 16, then one a second: else a target could
 * fill the disk. */
static bool may_request(struct snapshot_series *series, uint64_t now_ns)
{
	static const struct throttle_rate rate = {.burst = 16, .units = 1, .step_ns = CLOCK_NS_PER_S};
	const bool allowed = throttle_take(&series->heap.requests, &rate, now_ns);

	series->heap.refused += !allowed;
	return allowed;
}

static bool is_allowed(const struct scheduler *scheduler, struct snapshot_series *series, uint64_t now_ns)
{
	if (may_request(series, now_ns))
		return true;
	if (series->heap.refused == 1 && scheduler_setup(scheduler)->settings->verbosity >= 0)
		log_line_of(target_user(series->target),
		    "pid %d requests more than one snapshot a second: not all are taken",
		    (int)series->target->pid);
	return false;
}

/* Reads the requests in the process' place. The counts are not trusted, so they are only compared. */
static void read_requests(const struct scheduler *scheduler, const struct process *process,
    struct snapshot_series *series, uint64_t now_ns)
{
	struct region_place *place = region_place(process->run->region, process->place);
	uint32_t signals = atomic_load(&place->signals), asked = atomic_load(&place->asked);
	uint32_t first = series->heap.asked_seen + 1;
	char name[REGION_NAME_BYTES], cause[128];

	if (signals != series->heap.signals_seen && is_allowed(scheduler, series, now_ns))
		snapshot_request_ask(
		    &series->numbered, SNAPSHOT_BY_SIGNAL, "a signal to the process", NULL, 0);
	series->heap.signals_seen = signals;
	if (asked == series->heap.asked_seen)
		return;
	memcpy(name, place->asked_name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	snprintf(cause, sizeof(cause), "asked for by the program%s%s", name[0] ? ": " : "", name);
	series->heap.asked_seen = asked;
	if (is_allowed(scheduler, series, now_ns))
		snapshot_request_ask(&series->numbered, SNAPSHOT_BY_PROGRAM, cause, name, 0);
	else if (!snapshot_request_is_asked(&series->numbered)) {
		atomic_store(&place->refused, (uint64_t)first << 32 | asked);
		answer_program(process, series);
	}
}

/* ---- thresholds */

/* Says whether --on memory.high can have an effect. Without -v only about the first cgroup where it has none.
 * */
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
	if (settings->count && !series->heap.thresholds)
		series->heap.thresholds = threshold_watch_new(settings); /* if it fails: again later */
	return series->heap.thresholds;
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
	    .place = region_place(process->run->region, process->place),
	    .pid = process->target.readable ? process->target.pid : 0,
	    .forked = process->place != 0,
	    .before = process->was_running,
	    .cgroup = series->death.cgroup,
	    .cgroup_version = series->death.version,
	    .cgroups = &source->cgroups,
	};
	if (threshold_watch_look(
	        watch, &subject, now_ns, snapshot_request_is_asked(&series->numbered), &crossing))
		snapshot_request_ask(
		    &series->numbered, SNAPSHOT_BY_THRESHOLD, crossing.cause, crossing.name, 0);
	if (!series->heap.limit_said && threshold_watch_suppressed(watch)) {
		series->heap.limit_said = true;
		if (settings->verbosity >= 0)
			log_line(
			    "pid %d crosses a threshold again within %g s (--on-limit): the next snapshot "
			    "for it comes after that, if it is still crossed",
			    (int)process->target.pid, (double)settings->thresholds.limit_ns / 1e9);
	}
	if (rarely && threshold_watch_is_about(watch, THRESHOLD_MEMORY_HIGH))
		tell_cgroup(source, process, watch);
}

/* The events of the process are written with its heap. */
static void taken(
    struct snapshot_source *base, struct target *target, const struct snapshot_order *order, int error)
{
	const struct heap_source *source = (const struct heap_source *)base;

	if (order->by != SNAPSHOT_BY_CLOCK)
		answer_program((const struct process *)target, target->series);
	if (!error && source->events)
		event_source_take(source->events, target->pid, order);
}

static void look(struct snapshot_source *base, struct target *target, uint64_t now_ns, enum snapshot_look how)
{
	struct heap_source *source = (struct heap_source *)base;
	struct process *process = (struct process *)target;
	struct snapshot_series *series = target->series;
	const bool rarely = how == SNAPSHOT_LOOK_RARELY;

	if (rarely)
		snapshot_series_note_trend(
		    series, region_place(process->run->region, process->place), now_ns);
	read_requests(base->scheduler, process, series, now_ns);
	if (how == SNAPSHOT_LOOK_LAST)
		return;
	/* If a snapshot is asked for, resident memory is read with it. */
	if (target->readable && !snapshot_request_is_asked(&series->numbered))
		resident_watch_look(&series->heap.resident, process, now_ns,
		    source->registry->setup.intake->books.processes.count);
	look_at_thresholds(source, process, now_ns, rarely);
}

/* ---- what the scheduler asks */

static bool has(const struct snapshot_source *base, const struct target *target, enum snapshot_reason reason)
{
	const struct process *process = (const struct process *)target;
	uint64_t samples = process_samples(process);

	/* A target can make up 255 processes. Searches of /proc find one after the other that they do not
	 * exist. Until then they leave no snapshots, or the disk would be full. */
	if (reason == SNAPSHOT_REASON_DUE && process->unsure)
		return false;
	/* A process that was killed while it counted may have sent more than it counted. */
	if (reason == SNAPSHOT_REASON_END && process->counters.taken > samples)
		samples = process->counters.taken;
	return reason == SNAPSHOT_REASON_ASKED || scheduler_is_enough(base->scheduler, target, samples) ||
	    (target->series &&
	        resident_watch_is_large(&target->series->heap.resident, process,
	            ((const struct heap_source *)base)->period_bytes));
}

/* Whether the process is surely of our own user. If it had ended before we could look, only its program run
 * itself tells the user. A ticket shows that the program run was ours when it began (its children may have
 * changed their user). Where we are not root, no process can become another user's. */
static bool is_of_our_user(const struct process *process)
{
	const uid_t own = geteuid();

	if (own != 0)
		return true;
	if (process->target.pidfd >= 0)
		return process->share.account == target_account_of_user(own);
	return process->place == 0 && !process->run->region->taken_by;
}

/* A process of another user may fork as it likes, and must not fill our disk. (The daemon's store has a
 * limit.) */
static bool may_leave(struct snapshot_source *base, const struct target *target)
{
	static const struct throttle_rate rate = {
	    .burst = 1000, .units = 1, .step_ns = UINT64_C(10) * CLOCK_NS_PER_S};

	return target->plan || target->command || is_of_our_user((const struct process *)target) ||
	    throttle_take(&((struct heap_source *)base)->left_by_others, &rate, clock_now_ns());
}

/* For a session, whose client is told the paths at the end. */
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

/* With -v the blocks of other processes than COMMAND are shown at once. */
static void sum_up(struct heap_source *source, const struct snapshot *snapshot, int error)
{
	const struct target *target = snapshot->target;
	char end[END_PHRASE_BYTES];
	struct summary_row row;

	if (target->end == TARGET_ALIVE)
		snprintf(end, sizeof(end), "is running, sampling was stopped");
	else
		end_phrase_describe(target, &target->series->death, end, sizeof(end));
	summary_list_make_row(&row, (const struct heap_snapshot *)snapshot, end, error);
	if (!row.command && row.block && scheduler_setup(source->base.scheduler)->settings->verbosity > 0) {
		log_lines(row.block);
		if (row.path)
			log_line("  profile %s", row.path);
	}
	summary_list_add(&source->ended, &row);
}

static void written(struct snapshot_source *base, const struct snapshot *snapshot, int error)
{
	const struct heap_snapshot *heap_snapshot = (const struct heap_snapshot *)snapshot;
	struct heap_source *source = (struct heap_source *)base;

	if (snapshot->kind == SNAPSHOT_EXIT) {
		if (scheduler_setup(base->scheduler)->settings->verbosity >= 0)
			sum_up(source, snapshot, error);
	} else if (!error) { /* else the next snapshot tries again */
		heap_snapshot_peak_written(snapshot->target->series, heap_snapshot);
		if (!snapshot->target->plan)
			note_written(source, heap_snapshot->path);
	}
}

static void dropped(struct snapshot_source *base, const struct target *target, enum snapshot_drop why)
{
	struct heap_source *source = (struct heap_source *)base;
	const struct process *process = (const struct process *)target;
	const struct region_place *place = region_place(process->run->region, process->place);
	struct tally at_end = {0};
	char pid[END_PHRASE_PID_BYTES];

	if (why == SNAPSHOT_DROP_FEW) {
		at_end = heap_source_dropped_in_use(process);
		summary_list_omit(&source->ended, target, region_read_tally(&place->allocated), at_end,
		    (double)atomic_load(&place->peak_bytes_q8) / (1 << WEIGHT_BYTES_SHIFT));
	}
	heap_source_dropped_add(source->dropped, process, why, at_end);
	if (why == SNAPSHOT_DROP_FEW && scheduler_setup(base->scheduler)->settings->verbosity > 0)
		log_line_of(target_user(target), "%s (%s): no profile, %" PRIu64 " samples", target->title,
		    end_phrase_pid(target->pid, pid), process_samples(process));
}

static void release(struct snapshot_source *base, struct target *target)
{
	process_life_release(((struct heap_source *)base)->registry, (struct process *)target);
}

const struct snapshot_source_kind heap_source_kind = {
    .in_memory = true,
    .grows = true,
    .look = look,
    .has = has,
    .may_leave = may_leave,
    .take = take,
    .taken = taken,
    .written = written,
    .dropped = dropped,
    .release = release,
};

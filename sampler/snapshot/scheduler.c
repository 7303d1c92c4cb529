/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/scheduler.h"

#include "sampler/linux/clock.h"
#include "sampler/terminal/log_line.h"
#include "sampler/snapshot/heap_snapshot.h"
#include "sampler/snapshot/summary.h"
#include "sampler/snapshot/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	OTHERS_SAID = 8,             /* summaries of processes that the command has started */
	LOOK_NS = 50 * 1000000,      /* between looks at processes that may be new */
	REFRESH_NS = 1000 * 1000000, /* between looks at threads and cgroups */
};

struct scheduler {
	struct scheduler_setup setup;
	struct writer *writer;
	uint64_t period_bytes;
	uint64_t look_ns; /* when there may be something to do */
	uint64_t others;  /* ended processes but for the command */
	uint64_t due_ns;  /* when something is: worth waking up for */
	uint64_t arrivals_seen;
	uint32_t closing; /* processes whose exit profile is not on disk yet */
	uint64_t ended;   /* processes with an exit profile */
	uint64_t failed;  /* snapshots since one was written */
	int error;        /* of the last that failed */
	struct snapshot_series *series;
};

/* ---- names */

/* "a/heaptap.x.1.timeline.pb.gz" -> "a/heaptap.x.1.timeline.jsonl" */
static void make_jsonl(char *path, size_t path_bytes)
{
	static const char profile[] = ".pb.gz";
	size_t length = strlen(path), suffix = sizeof(profile) - 1;
	if (length > suffix && strcmp(path + length - suffix, profile) == 0)
		length -= suffix;
	snprintf(path + length, path_bytes - length, ".jsonl");
}

static int claim(
    struct scheduler *a, const struct process *process, const char *name, char *path, size_t path_bytes)
{
	const struct output_facts facts = {.program = process->target.title,
	    .pid = process->target.pid,
	    .snapshot = name,
	    .seconds = time(NULL)};
	int error = output_claim(a->setup.output, &facts, path, path_bytes);
	if (error)
		log_line("no name for a profile of pid %d: %s", (int)process->target.pid, strerror(-error));
	return error;
}

/* The path of a file that is written again and again, made when first needed. NULL: none to be had. */
static const char *standing_path(
    struct scheduler *a, const struct process *process, const char *name, bool json, char **path)
{
	char fresh[PATH_MAX];
	if (!*path && claim(a, process, name, fresh, sizeof(fresh)) == 0) {
		if (json)
			make_jsonl(fresh, sizeof(fresh));
		*path = strdup(fresh);
	}
	return *path;
}

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
	if (paused_ns && at < (int)text_bytes)
		snprintf(text + at, text_bytes - (size_t)at, "%ssampling was paused for %.3f s%s",
		    at ? "; " : "", (double)paused_ns / 1e9, paused ? " and is now" : "");
}

static void add_peak(struct scheduler *a, struct heap_snapshot *s, struct snapshot_series *series,
    const struct live_scan *live_scan)
{
	const struct heap *heap = s->process->heap;
	if (!live_scan->peak_order ||
	    (s->base.kind == SNAPSHOT_NUMBERED && live_scan->peak_order == series->peak_written) ||
	    heap_view_make(&s->peak, HEAP_VIEW_PEAK, heap, live_scan) != 0)
		return;
	series->peak_written = live_scan->peak_order;
	s->peak_path = standing_path(a, s->process, "peak", false, &series->peak_path);
	s->peak_unix_ns = s->base.unix_ns - (int64_t)(live_scan->now_ns - live_scan->peak_ns);
	s->peak_missing = live_scan->peak_missing;
}

/* The difference to the last periodic snapshot, beside this one. */
static void add_delta(
    struct scheduler *a, struct heap_snapshot *s, const char *name, const struct live_scan *live_scan)
{
	struct heap *heap = s->process->heap;
	uint64_t since_ns = heap_last_mark(heap)->time_ns;
	char delta_name[96], path[PATH_MAX];
	if (!since_ns)
		since_ns = s->process->target.start_ns;
	snprintf(delta_name, sizeof(delta_name), "%s-delta", name);
	s->delta_ns = live_scan->now_ns > since_ns ? live_scan->now_ns - since_ns : 1;
	if (heap_view_make(&s->delta, HEAP_VIEW_DELTA, heap, live_scan) == 0 &&
	    claim(a, s->process, delta_name, path, sizeof(path)) == 0)
		s->delta_path = strdup(path);
	heap_mark(heap, live_scan->counted, live_scan->now_ns);
}

static int add_views(struct scheduler *a, struct heap_snapshot *s, struct snapshot_series *series,
    const char *name, bool periodic)
{
	const struct snapshot_settings *settings = a->setup.settings;
	struct process *process = s->process;
	struct live_scan live_scan;
	int error = live_scan_take(&live_scan, process->image->region, process->place);
	if (!error) {
		registry_drain(a->setup.registry);
		error = heap_view_make(&s->view, HEAP_VIEW_LIVE, process->heap, &live_scan);
	}
	if (error) {
		live_scan_fini(&live_scan);
		return error;
	}
	s->base.unix_ns = clock_unix_ns();
	s->frees_lost = process->image->frees_lost;
	add_peak(a, s, series, &live_scan);
	if (settings->delta && periodic)
		add_delta(a, s, name, &live_scan);
	if (settings->timeline) {
		timeline_note(&series->timeline, region_place(process->image->region, process->place),
		    process->target.closed ? 0 : process->target.pid, s->view.lost_alloc.samples,
		    live_scan.now_ns, true);
		s->timeline = &series->timeline;
		s->timeline_path = standing_path(a, process, "timeline", true, &series->timeline_path);
	}
	if (settings->lifetimes)
		s->lifetimes_path = standing_path(a, process, "lifetimes", true, &series->lifetimes_path);
	describe_trouble(process, series, live_scan.now_ns, s->trouble, sizeof(s->trouble));
	if (!s->lifetimes_path)
		live_scan_fini(&live_scan);
	s->live_scan = live_scan; /* now_ns is needed in any case */
	return 0;
}

/* `name`: of the file, and the first word of the comment. */
static struct heap_snapshot *take(struct scheduler *a, struct process *process, enum snapshot_kind kind,
    const char *name, const char *cause, bool periodic)
{
	struct snapshot_series *series = process->target.series;
	struct heap_snapshot *s = heap_snapshot_new();
	if (!s)
		return NULL;
	s->base.target = &process->target;
	s->process = process;
	s->base.kind = kind;
	s->period_bytes = a->period_bytes;
	s->base.item.detail = a->setup.settings->detail;
	s->base.debuginfod = a->setup.settings->debuginfod;
	s->base.sink = a->setup.settings->sink;
	snprintf(s->base.cause, sizeof(s->base.cause), "%s, %s", name, cause);
	snprintf(s->base.host, sizeof(s->base.host), "%s", a->setup.output->host);
	a->setup.describe(a->setup.context, s->session, sizeof(s->session));
	if (claim(a, process, name, s->path, sizeof(s->path)) != 0 ||
	    add_views(a, s, series, name, periodic) != 0) {
		s->base.item.discard(&s->base.item);
		return NULL;
	}
	return s;
}

static void hand_over_askers(struct snapshot_series *series, struct heap_snapshot *s)
{
	memcpy(s->base.askers, series->askers, sizeof(s->base.askers));
	s->base.asker_count = series->asker_count;
	series->asker_count = 0;
	series->wanted = false;
}

static void take_numbered(
    struct scheduler *a, struct process *process, const char *cause, const char *word, bool periodic)
{
	struct snapshot_series *series = process->target.series;
	char name[96];
	snprintf(name, sizeof(name), word && word[0] ? "%04" PRIu32 "-%s" : "%04" PRIu32, series->next, word);
	for (char *slash = name; (slash = strchr(slash, '/'));)
		*slash = '_'; /* else only what follows the last one would be left of it */
	struct heap_snapshot *s = take(a, process, SNAPSHOT_NUMBERED, name, cause, periodic);
	if (!s) {
		series->failed++;
		log_line("out of memory: no snapshot of pid %d", (int)process->target.pid);
		return;
	}
	series->next++;
	s->base.item.urgent = !periodic;
	if (!periodic)
		hand_over_askers(series, s);
	series->writing = process->shown = true;
	series->jobs++;
	writer_submit(a->writer, &s->base.item);
	event_scheduler_take(a->setup.events, process, name, cause);
}

/* ---- what is asked for */

static struct snapshot_series *series_of(struct scheduler *a, struct process *process)
{
	if (!process->target.series) {
		process->target.series =
		    snapshot_series_new(process->target.start_ns + a->setup.settings->interval_ns);
		if (process->target.series)
			snapshot_series_enlist(process->target.series, &a->series);
	}
	return process->target.series;
}

static void want(
    struct scheduler *a, struct snapshot_series *series, const char *cause, const char *name, uint64_t asker)
{
	snapshot_series_want(series, cause, name, asker);
	a->look_ns = 0;
}

/* The words in the process' place; hostile, so they are only compared. */
static void read_requests(struct scheduler *a, struct process *process, struct snapshot_series *series)
{
	struct region_place *place = region_place(process->image->region, process->place);
	uint32_t signals = atomic_load(&place->signals), asked = atomic_load(&place->asked);
	char name[REGION_NAME_BYTES], cause[128];
	if (signals != series->signals_seen)
		want(a, series, "a signal to the process", NULL, 0);
	series->signals_seen = signals;
	if (asked == series->asked_seen)
		return;
	memcpy(name, place->asked_name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	snprintf(cause, sizeof(cause), name[0] ? "asked for by the program: %s" : "asked for by the program",
	    name);
	want(a, series, cause, name, 0);
	series->asked_seen = asked;
}

/* The books are read: heaptap_snapshot() may return. */
static void answer_program(struct process *process, const struct snapshot_series *series)
{
	struct region_place *place = region_place(process->image->region, process->place);
	if (atomic_exchange(&place->answered, series->asked_seen) != series->asked_seen)
		syscall(SYS_futex, &place->answered, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static bool is_ours(const struct process *process)
{
	return process && process->watched && !process->target.closed;
}

uint32_t scheduler_want_all(struct scheduler *a, const char *cause, uint64_t asker)
{
	uint32_t count = 0;
	for (struct image *image = a->setup.registry->intake->images; image; image = image->next)
		for (uint32_t i = 0; i < image->places_end && image->live_processes; i++) {
			struct process *process = image->process[i];
			struct snapshot_series *series = is_ours(process) ? series_of(a, process) : NULL;
			if (series && snapshot_series_want(series, cause, NULL, asker))
				count++;
		}
	a->look_ns = 0;
	return count;
}

uint32_t scheduler_ask(struct scheduler *a, pid_t pid, uint64_t asker)
{
	static const char cause[] = "heaptap snapshot";
	for (struct image *image = a->setup.registry->intake->images; image; image = image->next)
		for (uint32_t i = 0; i < image->places_end && image->live_processes; i++) {
			struct process *process = image->process[i];
			struct snapshot_series *series =
			    is_ours(process) && process->target.pid == pid && process->target.pidfd >= 0
			    ? series_of(a, process)
			    : NULL;
			if (!series || !snapshot_series_want(series, cause, NULL, asker))
				continue;
			a->look_ns = 0;
			return 1;
		}
	return 0;
}

/* ---- the tick */

static void refresh(
    struct scheduler *a, struct process *process, struct snapshot_series *series, uint64_t now_ns)
{
	const struct snapshot_settings *settings = a->setup.settings;
	if (process->target.pidfd < 0 || (series->refreshed_ns && now_ns - series->refreshed_ns < REFRESH_NS))
		return;
	series->refreshed_ns = now_ns;
	oom_watch_update(&series->death, process->target.pid);
	if (process->target.threads)
		threads_read(process->target.threads, process->target.pid);
	if (settings->timeline) {
		uint64_t taken = process_samples(process), arrived = heap_total(process->heap).samples;
		timeline_note(&series->timeline, region_place(process->image->region, process->place),
		    process->target.pid, taken > arrived ? taken - arrived : 0, now_ns, false);
	}
}

static void tend_interval(
    struct scheduler *a, struct process *process, struct snapshot_series *series, uint64_t now_ns)
{
	uint64_t interval_ns = a->setup.settings->interval_ns;
	char cause[64];
	if (snapshot_series_look(series, interval_ns, now_ns) == SNAPSHOT_SERIES_NOT_DUE)
		return;
	if (process_samples(process) == 0) {
		snapshot_series_advance(series, interval_ns, now_ns);
		return;
	}
	if (series->writing || !writer_can_start(a->writer))
		return; /* later, until the next is due */
	snprintf(cause, sizeof(cause), "every %g s", (double)interval_ns / 1e9);
	take_numbered(a, process, cause, NULL, true);
	snapshot_series_advance(series, interval_ns, now_ns);
}

static void tend_process(struct scheduler *a, struct process *process, uint64_t now_ns)
{
	struct snapshot_series *series = series_of(a, process);
	if (!series)
		return;
	refresh(a, process, series, now_ns);
	read_requests(a, process, series);
	if (series->wanted && !series->writing) {
		take_numbered(a, process, series->wanted_cause, series->wanted_name, false);
		answer_program(process, series);
	}
	tend_interval(a, process, series, now_ns);
	uint64_t due_ns = a->setup.settings->interval_ns && !series->writing ? series->due_ns : UINT64_MAX;
	if (due_ns < now_ns + 1000000)
		due_ns = now_ns + 1000000; /* waits for the writer */
	if (due_ns < a->due_ns)
		a->due_ns = due_ns;
}

static bool requests_changed(const struct scheduler *a, struct image *image)
{
	uint64_t requests = image->ready ? atomic_load(&region_header(image->region)->requests) : 0;
	bool changed = requests != image->requests_seen;
	image->requests_seen = requests;
	a->setup.registry->requests += changed;
	return changed;
}

uint64_t scheduler_tend(struct scheduler *a, uint64_t now_ns, uint64_t period_bytes)
{
	a->period_bytes = period_bytes;
	/* Then the user waits for all of it. */
	writer_set_hurry(a->writer, a->setup.registry->command_ended && !a->setup.registry->front_gone);
	writer_tend(a->writer, now_ns);
	/* what a process was before it may have ended soon */
	if (a->setup.registry->arrivals != a->arrivals_seen)
		a->look_ns = 0;
	a->arrivals_seen = a->setup.registry->arrivals;
	for (struct image *image = a->setup.registry->intake->images; image; image = image->next)
		if (requests_changed(a, image))
			a->look_ns = 0;
	if (now_ns >= a->look_ns || now_ns >= a->due_ns) {
		a->look_ns = now_ns + LOOK_NS;
		a->due_ns = UINT64_MAX;
		for (struct image *image = a->setup.registry->intake->images; image; image = image->next)
			for (uint32_t i = 0; i < image->places_end && image->live_processes; i++)
				if (is_ours(image->process[i]))
					tend_process(a, image->process[i], now_ns);
	}
	return a->due_ns > now_ns ? a->due_ns - now_ns : 0;
}

/* ---- the end of a process */

static void describe_end(
    const struct process *process, const struct snapshot_series *series, char *text, size_t text_bytes)
{
	char end[64];
	summary_end(process->target.end, process->target.status, end, sizeof(end));
	int at = snprintf(text, text_bytes, "the process %s", end);
	if (process->target.end != TARGET_EXITED || !WIFSIGNALED(process->target.status) ||
	    WTERMSIG(process->target.status) != SIGKILL)
		return;
	int64_t kills = oom_watch_kills(&series->death);
	const char *cgroup = series->death.cgroup;
	if (kills > 0 && cgroup[0] && strlen(cgroup) < text_bytes / 2)
		snprintf(text + at, text_bytes - (size_t)at,
		    "; the OOM killer took %" PRId64 " in its memory cgroup %s meanwhile", kills, cgroup);
	else if (kills > 0)
		snprintf(text + at, text_bytes - (size_t)at,
		    "; the OOM killer took %" PRId64 " processes meanwhile", kills);
}

static void release(struct scheduler *a, struct process *process)
{
	a->closing--;
	snapshot_series_free(process->target.series);
	process->target.series = NULL;
	registry_release(a->setup.registry, process);
}

void scheduler_close(struct scheduler *a, struct process *process)
{
	struct snapshot_series *series = series_of(a, process);
	char cause[400] = "";
	bool last_of_command = process->command && process->target.end != TARGET_EXEC;
	a->closing++;
	if (process_samples(process) == 0 && process->counters.taken == 0 && !last_of_command &&
	    !process->shown) {
		release(a, process);
		return;
	}
	if (process->target.end == TARGET_GONE &&
	    exit_status_read(process->target.pidfd, process->target.pid, &process->target.status) == 0)
		process->target.end = TARGET_EXITED;
	if (series)
		describe_end(process, series, cause, sizeof(cause));
	struct heap_snapshot *s = series ? take(a, process, SNAPSHOT_EXIT, "exit", cause, false) : NULL;
	if (!s) {
		log_line("out of memory: no profile of pid %d", (int)process->target.pid);
		if (!series || !series->jobs)
			release(a, process);
		return;
	}
	s->base.item.urgent = process->command;
	a->ended++;
	hand_over_askers(series, s);
	series->jobs++;
	writer_submit(a->writer, &s->base.item);
}

/* ---- what the writer has done */

static void report(struct scheduler *a, const struct heap_snapshot *s, int error)
{
	int verbosity = a->setup.settings->verbosity;
	bool ended = s->base.kind == SNAPSHOT_EXIT && verbosity >= 0, other = ended && !s->process->command;
	if (ended && (!other || error || verbosity > 0 || a->others < OTHERS_SAID))
		summary_print(s, error);
	else if (!ended && error && error != a->error) /* the same once more is counted, not said */
		log_line(
		    "profile not written: %s: %s; the next snapshot tries again", s->path, strerror(-error));
	else if (!error && verbosity > 0)
		log_line("pid %d: snapshot %s: %s", (int)s->process->target.pid, s->base.cause, s->path);
	a->others += other;
	if (error) {
		a->failed++;
	} else if (a->failed) {
		log_line("profiles are written again, after %" PRIu64 " that were not", a->failed);
		a->failed = 0;
	}
	a->error = error;
}

static void on_written(void *context, const struct writer_item *item, int error)
{
	const struct heap_snapshot *s = (const struct heap_snapshot *)item;
	struct scheduler *a = context;
	struct process *process = s->process;
	struct snapshot_series *series = process->target.series;
	report(a, s, error);
	series->jobs--;
	series->failed += error != 0;
	if (s->base.kind == SNAPSHOT_NUMBERED) {
		series->writing = false;
		if (!error)
			snapshot_series_keep(series, s->path, s->delta_path, a->setup.settings->keep);
	}
	for (uint32_t i = 0; i < s->base.asker_count; i++)
		a->setup.answer(a->setup.context, s->base.askers[i], process->target.pid, s->path, error);
	a->look_ns = 0;
	if (process->target.closed && !series->jobs)
		release(a, process);
}

void scheduler_reap(struct scheduler *a, pid_t pid, int status)
{
	writer_reap(a->writer, pid, status);
}

void scheduler_progress(const struct scheduler *a, uint64_t *written, uint64_t *ended)
{
	*ended = a->ended;
	*written = a->ended > a->closing ? a->ended - a->closing : 0;
}

bool scheduler_settled(const struct scheduler *a)
{
	return a->closing == 0;
}

struct scheduler *scheduler_new(const struct scheduler_setup *setup)
{
	struct scheduler *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->setup = *setup;
	a->period_bytes = setup->settings->period_bytes;
	a->writer = writer_new(on_written, a);
	if (a->writer)
		return a;
	free(a);
	return NULL;
}

void scheduler_free(struct scheduler *a)
{
	if (!a)
		return;
	writer_free(a->writer);
	while (a->series)
		snapshot_series_free(a->series);
	free(a);
}

uint64_t scheduler_unsaid(const struct scheduler *a)
{
	return a->setup.settings->verbosity == 0 && a->others > OTHERS_SAID ? a->others - OTHERS_SAID : 0;
}

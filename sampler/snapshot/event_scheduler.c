/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/event_scheduler.h"

#include "sampler/events/event_intake.h"
#include "sampler/linux/clock.h"
#include "sampler/snapshot/event_snapshot.h"
#include "sampler/terminal/log_line.h"
#include "sampler/snapshot/snapshot_series.h"
#include "sampler/snapshot/summary.h"
#include "sampler/snapshot/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

enum {
	OTHERS_SAID = 8,          /* summaries of processes that the command has started */
	LOOK_NS = 50 * 1000000,   /* between looks at what is due */
	SWEEP_NS = 500 * 1000000, /* between looks at all subjects: their last records may have been lost */
};

struct event_scheduler {
	struct event_scheduler_setup setup;
	struct counters *counters;
	struct event_intake intake;
	struct writer *writer;
	pid_t command; /* 0: not started */
	bool command_ended;
	bool orphan; /* its end is found like any other's */
	int command_status;
	bool stopped; /* counts no more */
	uint64_t look_ns, sweep_ns;
	uint64_t others;  /* exit profiles of processes but for the command */
	uint32_t closing; /* exit profiles that are not on disk yet */
	struct snapshot_series *series;
};

/* ---- taking */

static void describe_end(
    const struct event_scheduler *a, const struct event_process *s, char *text, size_t text_bytes)
{
	char end[64];
	if (a->stopped && s->target.end == TARGET_ALIVE) {
		snprintf(text, text_bytes, "sampling was ended, the process goes on");
		return;
	}
	summary_end(s->target.end, s->target.status, end, sizeof(end));
	snprintf(text, text_bytes, "the process %s", end);
}

/* The same name that the profiles of its heap have. */
static void take_title(const struct event_scheduler *a, struct event_process *s)
{
	const struct process *process =
	    a->setup.registry ? registry_find(a->setup.registry, s->target.pid) : NULL;
	event_process_look(s);
	if (process)
		memcpy(s->target.title, process->target.title, sizeof(s->target.title));
}

static int fill_sheet(
    struct event_scheduler *a, struct event_snapshot *snapshot, size_t event, const char *name)
{
	struct event_sheet *sheet = &snapshot->sheets[event];
	const struct event_process *s = snapshot->subject;
	const struct event_book *book = s->books[event];
	char full[EVENT_TEXT_BYTES + 96], path[PATH_MAX];
	sheet->event = &a->setup.settings->events[event];
	counters_read(a->counters, event, &sheet->counters);
	sheet->sum = a->intake.sum[event];
	sheet->throttled = a->intake.throttled[event];
	sheet->lost_here = a->intake.sampled <= 1 ? sheet->counters.lost : 0;
	bool wanted = book ||
	    (snapshot->base.kind == SNAPSHOT_EXIT && s->target.pid == a->command &&
	        s->target.end != TARGET_EXEC);
	if (!wanted)
		return 0;
	if (book) {
		sheet->count = event_book_count(book);
		sheet->total = event_book_total(book);
		sheet->rows = calloc(sheet->count + 1, sizeof(*sheet->rows));
		if (!sheet->rows)
			return -ENOMEM;
		memcpy(sheet->rows, event_book_rows(book), sheet->count * sizeof(*sheet->rows));
	}
	snprintf(full, sizeof(full), "%s-%s", sheet->event->label, name);
	const struct output_facts facts = {
	    .program = s->target.title, .pid = s->target.pid, .snapshot = full, .seconds = time(NULL)};
	int error = output_claim(a->setup.output, &facts, path, sizeof(path));
	char *copy = error ? NULL : strdup(path);
	if (copy)
		event_snapshot_set_path(snapshot, event, copy);
	return error ? error : copy ? 0 : -ENOMEM;
}

static struct event_snapshot *take(struct event_scheduler *a, struct event_process *s,
    enum snapshot_kind kind, const char *name, const char *cause)
{
	const struct snapshot_settings *settings = a->setup.settings;
	struct event_snapshot *snapshot = event_snapshot_new();
	int error = snapshot ? 0 : -ENOMEM;
	take_title(a, s);
	if (snapshot) {
		snapshot->subject = s;
		snapshot->base.target = &s->target;
		snapshot->base.kind = kind;
		snapshot->base.item.detail = settings->detail;
		snapshot->base.item.urgent = kind == SNAPSHOT_EXIT && s->target.pid == a->command;
		snapshot->base.debuginfod = settings->debuginfod;
		snapshot->base.sink = settings->sink;
		snapshot->base.unix_ns = clock_unix_ns();
		snapshot->duration_ns = clock_now_ns() - s->target.start_ns;
		snapshot->bad = a->intake.bad;
		snapshot->sheet_count = settings->event_count;
		snprintf(snapshot->base.cause, sizeof(snapshot->base.cause), "%s, %s", name, cause);
		snprintf(snapshot->base.host, sizeof(snapshot->base.host), "%s", a->setup.output->host);
	}
	for (size_t i = 0; i < settings->event_count && !error; i++)
		error = fill_sheet(a, snapshot, i, name);
	if (!error)
		return snapshot;
	log_line("no event profiles of pid %d: %s", (int)s->target.pid, strerror(-error));
	if (snapshot)
		snapshot->base.item.discard(&snapshot->base.item);
	return NULL;
}

static struct snapshot_series *series_of(struct event_scheduler *a, struct event_process *s)
{
	if (!s->target.series) {
		s->target.series = snapshot_series_new(s->target.start_ns + a->setup.settings->interval_ns);
		if (s->target.series)
			snapshot_series_enlist(s->target.series, &a->series);
	}
	return s->target.series;
}

static void take_numbered(
    struct event_scheduler *a, struct event_process *s, const char *name, const char *cause, bool periodic)
{
	struct snapshot_series *series = series_of(a, s);
	struct event_snapshot *snapshot = series ? take(a, s, SNAPSHOT_NUMBERED, name, cause) : NULL;
	if (!snapshot)
		return;
	if (!periodic) {
		memcpy(snapshot->base.askers, series->askers, sizeof(snapshot->base.askers));
		snapshot->base.asker_count = series->asker_count;
		series->asker_count = 0;
		series->wanted = false;
		snapshot->base.item.urgent = true;
	}
	series->writing = true;
	series->jobs++;
	writer_submit(a->writer, &snapshot->base.item);
}

void event_scheduler_take(
    struct event_scheduler *a, const struct process *process, const char *name, const char *cause)
{
	if (!a)
		return;
	event_intake_drain(&a->intake, true);
	struct event_process *s =
	    process->target.pid > 0 ? event_processes_find(&a->intake.subjects, process->target.pid) : NULL;
	if (s && event_process_has_samples(s))
		take_numbered(a, s, name, cause, true);
}

/* ---- the end of a subject */

static void release(struct event_scheduler *a, struct event_process *s)
{
	snapshot_series_free(s->target.series);
	event_processes_remove(&a->intake.subjects, s);
}

static void close_subject(struct event_scheduler *a, struct event_process *s)
{
	char cause[128];
	struct event_snapshot *snapshot = NULL;
	bool command = s->target.pid == a->command && s->target.end != TARGET_EXEC;
	if (event_process_has_samples(s) || command) {
		describe_end(a, s, cause, sizeof(cause));
		snapshot = series_of(a, s) ? take(a, s, SNAPSHOT_EXIT, "exit", cause) : NULL;
	}
	if (!snapshot) {
		if (!s->target.series || !s->target.series->jobs)
			release(a, s);
		return;
	}
	memcpy(snapshot->base.askers, s->target.series->askers, sizeof(snapshot->base.askers));
	snapshot->base.asker_count = s->target.series->asker_count;
	s->target.series->asker_count = 0;
	s->target.series->jobs++;
	a->closing++;
	writer_submit(a->writer, &snapshot->base.item);
}

static void on_executed(void *context, struct event_process *subject)
{
	close_subject(context, subject);
}

static void finish(struct event_scheduler *a, struct event_process *s)
{
	s->target.closed = true;
	s->target.end = TARGET_GONE;
	if (s->target.pid == a->command && a->command_ended) {
		s->target.end = TARGET_EXITED;
		s->target.status = a->command_status;
	} else if (s->target.pidfd >= 0 &&
	    exit_status_read(s->target.pidfd, s->target.pid, &s->target.status) == 0) {
		s->target.end = TARGET_EXITED;
	}
	close_subject(a, s);
}

/* COMMAND's own end waits for the front, which knows its status. */
static bool is_over(const struct event_scheduler *a, struct event_process *s)
{
	if (s->target.closed)
		return false;
	if (s->target.pid == a->command && !a->orphan)
		return a->command_ended;
	return target_has_ended(&s->target);
}

static void sweep(struct event_scheduler *a, bool all)
{
	bool drained = false;
	for (struct event_process *s = a->intake.subjects.list, *next; s; s = next) {
		next = s->next;
		if (s->target.closed || (!s->exits && !all && s->target.pid != a->command) || !is_over(a, s))
			continue;
		if (!drained) {
			/* May add and remove subjects: begin again. */
			drained = true;
			event_intake_drain(&a->intake, true);
			next = a->intake.subjects.list;
			continue;
		}
		finish(a, s);
	}
}

void event_scheduler_stop(struct event_scheduler *a)
{
	event_intake_drain(&a->intake, true);
	a->stopped = true;
	for (struct event_process *s = a->intake.subjects.list, *next; s; s = next) {
		next = s->next;
		if (s->target.closed)
			continue;
		s->target.closed = true;
		close_subject(a, s);
	}
}

/* ---- what is asked for */

static bool is_alone(const struct event_scheduler *a, const struct event_process *s)
{
	return !s->target.closed && event_process_has_samples(s) &&
	    !(a->setup.registry && registry_find(a->setup.registry, s->target.pid));
}

/* Nobody writes at every interval the heap of a process that has not been sampled yet. */
static bool is_alone_by_interval(const struct event_scheduler *a, const struct event_process *s)
{
	const struct process *process =
	    a->setup.registry ? registry_find(a->setup.registry, s->target.pid) : NULL;
	return !s->target.closed && event_process_has_samples(s) &&
	    (!process || process_samples(process) == 0);
}

uint32_t event_scheduler_want_all(struct event_scheduler *a, const char *cause, uint64_t asker)
{
	uint32_t count = 0;
	if (!a)
		return 0;
	event_intake_drain(&a->intake, true);
	for (struct event_process *s = a->intake.subjects.list; s; s = s->next)
		if (is_alone(a, s) && series_of(a, s) &&
		    snapshot_series_want(s->target.series, cause, NULL, asker))
			count++;
	a->look_ns = 0;
	return count;
}

uint32_t event_scheduler_ask(struct event_scheduler *a, pid_t pid, uint64_t asker)
{
	if (!a)
		return 0;
	event_intake_drain(&a->intake, true);
	struct event_process *s = event_processes_find(&a->intake.subjects, pid);
	a->look_ns = 0;
	return s && is_alone(a, s) && series_of(a, s) &&
	    snapshot_series_want(s->target.series, "heaptap snapshot", NULL, asker);
}

/* ---- the tick */

static void tend_subject(struct event_scheduler *a, struct event_process *s, uint64_t now_ns)
{
	uint64_t interval_ns = a->setup.settings->interval_ns;
	struct snapshot_series *series = series_of(a, s);
	char name[16], cause[64];
	if (!series || series->writing)
		return;
	bool due = snapshot_series_look(series, interval_ns, now_ns) == SNAPSHOT_SERIES_DUE;
	if (!series->wanted && !due)
		return;
	if (!series->wanted && !writer_can_start(a->writer))
		return;
	bool periodic = !series->wanted;
	snprintf(name, sizeof(name), "%04" PRIu32, series->next++);
	snprintf(cause, sizeof(cause), "every %g s", (double)interval_ns / 1e9);
	take_numbered(a, s, name, periodic ? cause : series->wanted_cause, periodic);
	if (due)
		snapshot_series_advance(series, interval_ns, now_ns);
}

uint64_t event_scheduler_tend(struct event_scheduler *a, uint64_t now_ns)
{
	if (!a)
		return UINT64_MAX;
	writer_set_hurry(a->writer, a->command_ended && !a->orphan);
	writer_tend(a->writer, now_ns);
	if (a->stopped)
		return LOOK_NS;
	event_intake_drain(&a->intake, false);
	bool all = now_ns - a->sweep_ns >= SWEEP_NS;
	if (all)
		a->sweep_ns = now_ns;
	sweep(a, all);
	if (now_ns < a->look_ns)
		return a->look_ns - now_ns;
	a->look_ns = now_ns + LOOK_NS;
	for (struct event_process *s = a->intake.subjects.list; s; s = s->next)
		if (is_alone_by_interval(a, s))
			tend_subject(a, s, now_ns);
	return LOOK_NS;
}

/* ---- what the writer has done */

static void on_written(void *context, const struct writer_item *item, int error)
{
	struct event_scheduler *a = context;
	const struct event_snapshot *snapshot = (const struct event_snapshot *)item;
	struct event_process *s = snapshot->subject;
	size_t keep = a->setup.settings->keep * a->setup.settings->event_count;
	bool other = snapshot->base.kind == SNAPSHOT_EXIT && s->target.pid != a->command;
	if (!other || error || a->setup.settings->verbosity > 0 || a->others < OTHERS_SAID)
		event_snapshot_print(snapshot, error, a->setup.settings->verbosity);
	a->others += other;
	s->target.series->jobs--;
	if (snapshot->base.kind == SNAPSHOT_NUMBERED) {
		s->target.series->writing = false;
		for (size_t i = 0; i < snapshot->sheet_count && !error; i++)
			if (snapshot->sheets[i].base.path)
				snapshot_series_keep(
				    s->target.series, snapshot->sheets[i].base.path, NULL, keep);
	} else {
		a->closing--;
	}
	for (uint32_t i = 0; i < snapshot->base.asker_count; i++)
		a->setup.answer(a->setup.context, snapshot->base.askers[i], s->target.pid,
		    event_snapshot_path(snapshot), error);
	a->look_ns = 0;
	if (s->target.closed && !s->target.series->jobs)
		release(a, s);
}

void event_scheduler_reap(struct event_scheduler *a, pid_t pid, int status)
{
	if (a)
		writer_reap(a->writer, pid, status);
}

bool event_scheduler_settled(const struct event_scheduler *a)
{
	if (!a)
		return true;
	if (a->closing)
		return false;
	return !a->command_ended || !event_processes_find(&a->intake.subjects, a->command);
}

bool event_scheduler_empty(const struct event_scheduler *a)
{
	return !a || !a->intake.subjects.list;
}

/* ---- beginning and end */

static void drain(void *context)
{
	struct event_scheduler *a = context;
	event_intake_drain(&a->intake, true);
}

int event_scheduler_attach_command(struct event_scheduler *a, pid_t command)
{
	int error = counters_attach_waiting(a->counters, command);
	if (!error && !event_processes_add(&a->intake.subjects, command, NULL, clock_now_ns()))
		error = -ENOMEM;
	if (!error)
		a->command = command;
	return error;
}

void event_scheduler_end(struct event_scheduler *a, int status)
{
	if (!a)
		return;
	a->command_ended = true;
	a->command_status = status;
}

void event_scheduler_cancel(struct event_scheduler *a)
{
	if (!a)
		return;
	struct event_process *s = event_processes_find(&a->intake.subjects, a->command);
	if (s)
		release(a, s);
	a->command = 0;
}

void event_scheduler_orphan(struct event_scheduler *a)
{
	if (a)
		a->orphan = true;
}

int event_scheduler_attach(struct event_scheduler *a, pid_t pid)
{
	struct event_process *s = event_processes_add(&a->intake.subjects, pid, NULL, clock_now_ns());
	if (!s)
		return -ENOMEM;
	target_read_maps(&s->target, clock_now_ns(), 0); /* its name is believed only if it is mapped */
	event_process_look(s);
	int error = s->target.pidfd < 0 ? -ESRCH : counters_attach_running(a->counters, pid, drain, a);
	if (error) {
		release(a, s);
		return error;
	}
	/* It is what the session is about, as a COMMAND would be. */
	a->command = pid;
	a->orphan = true;
	/* Ranges that came since its trackers were on are told of, and told again is no harm. */
	target_read_maps(&s->target, clock_now_ns(), 0);
	return 0;
}

struct event_scheduler *event_scheduler_new(const struct event_scheduler_setup *setup, int *error)
{
	const struct snapshot_settings *settings = setup->settings;
	struct event_scheduler *a = settings->event_count ? calloc(1, sizeof(*a)) : NULL;
	*error = settings->event_count ? -ENOMEM : 0;
	if (!a)
		return NULL;
	a->setup = *setup;
	a->writer = writer_new(on_written, a);
	if (a->writer)
		a->counters =
		    counters_open(settings->events, settings->event_count, settings->stack_bytes, error);
	a->intake = (struct event_intake){
	    .events = settings->events,
	    .event_count = settings->event_count,
	    .counters = a->counters,
	    .by_thread = settings->labels & HEAP_LABEL_THREAD,
	    .executed = on_executed,
	    .context = a,
	    .subjects = {.modules = setup->modules},
	};
	if (!a->counters || (*error = event_intake_init(&a->intake)) != 0) {
		event_scheduler_free(a);
		return NULL;
	}
	struct rings *rings = counters_rings(a->counters);
	for (size_t i = 0; i < rings_count(rings); i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.fd = rings_fd(rings, i)};
		/* else the tick finds out */
		(void)epoll_ctl(setup->epoll_fd, EPOLL_CTL_ADD, rings_fd(rings, i), &event);
	}
	return a;
}

void event_scheduler_free(struct event_scheduler *a)
{
	if (!a)
		return;
	if (a->setup.settings->verbosity == 0 && a->others > OTHERS_SAID)
		log_line("and the events of %" PRIu64 " processes more", a->others - OTHERS_SAID);
	writer_free(a->writer);
	event_intake_fini(&a->intake);
	while (a->series)
		snapshot_series_free(a->series);
	counters_close(a->counters);
	free(a);
}

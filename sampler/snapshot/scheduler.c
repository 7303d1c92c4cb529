/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/scheduler.h"
#include "sampler/snapshot/scheduler_state.h"

#include "pprof/profile/origin.h"
#include "pprof/text/log_line.h"
#include "sampler/linux/clock.h"
#include "sampler/snapshot/process_end.h"
#include "sampler/snapshot/schedule.h"
#include "sampler/target/target_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	LOOK_NS = 50 * 1000000,      /* between looks at targets */
	REFRESH_NS = 1000 * 1000000, /* between looks at threads and cgroups, at least */
};

int scheduler_claim(const struct scheduler *scheduler, const struct target *target, const char *name,
    char *path, size_t path_bytes)
{
	const struct output_facts facts = {
	    .program = target->title, .pid = target->pid, .snapshot = name, .seconds = time(NULL)};

	if (scheduler->setup.claim)
		return scheduler->setup.claim(scheduler->setup.context, target, name, path, path_bytes);
	return output_claim(scheduler->setup.output, &facts, path, path_bytes);
}

char *scheduler_claim_beside(const struct scheduler *scheduler, const struct target *target, const char *name)
{
	char path[PATH_MAX];
	int error = scheduler_claim(scheduler, target, name, path, sizeof(path));

	if (error && !target->series->beside_error)
		log_line_of(target_user(target), "no file %s of pid %d: %s", name, (int)target->pid,
		    strerror(-error));
	target->series->beside_error = error;
	return error ? NULL : strdup(path);
}

static uint64_t interval_of(
    const struct scheduler *scheduler, const struct snapshot_source *source, const struct target *target)
{
	const uint64_t interval_ns =
	    target->plan ? target->plan->interval_ns : scheduler->setup.settings->interval_ns;

	return interval_ns == SCHEDULE_USUAL && !source->kind->grows ? SCHEDULE_USUAL_NS : interval_ns;
}

/* NULL: out of memory. A process that an earlier sampler knew has had its snapshots, at the same times. */
static struct snapshot_series *series_of(struct snapshot_source *source, struct target *target)
{
	struct scheduler *scheduler = source->scheduler;

	if (!target->series) {
		const uint64_t begin_ns = target->sampled_ns;

		target->series = snapshot_series_new(begin_ns, interval_of(scheduler, source, target),
		    target->plan ? clock_now_ns() : begin_ns);
		if (!target->series)
			return NULL;
		target->series->target = target;
		target->series->source = source;
		snapshot_series_enlist(target->series, &scheduler->series);
	}
	return target->series;
}

/* ---- taking */

static void answer(struct scheduler *scheduler, const uint64_t *askers, uint32_t count, pid_t pid,
    const char *path, int error)
{
	for (uint32_t i = 0; i < count; i++)
		scheduler->setup.answer(scheduler->setup.context, askers[i], pid, path, error);
}

/* There is nothing for those who wait. Who is told so may turn out to have gone, and is taken off every list
 * meanwhile (scheduler_forget): this one is empty by then. */
static void refuse_askers(struct scheduler *scheduler, struct snapshot_series *series, int error)
{
	uint64_t askers[SNAPSHOT_ASKERS];
	const uint32_t count = series->asker_count;

	memcpy(askers, series->askers, sizeof(askers));
	series->asker_count = 0;
	answer(scheduler, askers, count, series->target->pid, "", error);
}

/* Which session and process it belongs to: the same words in each of the process' profiles, so the start
 * is reckoned from the session's, once. */
static void identify(
    const struct scheduler *scheduler, const struct target *target, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, ORIGIN_IDENTITY_FORMAT, scheduler->began_unix_ns,
	    (int)scheduler->began_pid, scheduler_start_unix_ns(scheduler, target));
}

static void forget_wish(struct snapshot_series *series)
{
	series->wanted = series->wanted_by_hand = series->wanted_by_a_rule = series->wanted_at_once = false;
}

static void take_askers(struct snapshot *s, struct snapshot_series *series)
{
	memcpy(s->askers, series->askers, sizeof(s->askers));
	s->asker_count = series->asker_count;
	series->asker_count = 0;
	forget_wish(series);
}

static int take(struct scheduler *scheduler, struct snapshot_series *series,
    const struct snapshot_request *request, bool urgent)
{
	const struct snapshot_settings *settings = scheduler->setup.settings;
	struct snapshot *s = NULL;
	int error = series->source->kind->take(series->source, series->target, request, &s);

	if (error)
		return error;
	s->item.series = series;
	s->sink = settings->sink;
	if (request->kind == SNAPSHOT_MEMORY)
		error = in_memory_begin(&series->in_memory, s);
	else if (!request->periodic)
		take_askers(s, series);
	if (error) {
		s->item.discard(&s->item);
		return error;
	}
	s->item.detail = settings->detail;
	s->item.urgent = urgent;
	s->item.account = target_account(series->target);
	s->target = series->target;
	s->kind = request->kind;
	s->by_hand = request->by_hand;
	s->by_a_rule = request->by_a_rule;
	s->debuginfod = settings->debuginfod;
	snprintf(s->cause, sizeof(s->cause), "%s, %s", request->name, request->cause);
	snprintf(s->host, sizeof(s->host), "%s", scheduler->setup.output->host);
	identify(scheduler, series->target, s->identity, sizeof(s->identity));
	series->jobs++;
	series->writing = series->writing || request->kind == SNAPSHOT_NUMBERED;
	writer_submit(scheduler->writer, &s->item);
	return 0;
}

static void take_in_memory(struct scheduler *scheduler, struct snapshot_series *series)
{
	const struct snapshot_request request = {.kind = SNAPSHOT_MEMORY,
	    .name = "now",
	    .cause = "asked for through the control socket",
	    .by_hand = true};
	int error = take(scheduler, series, &request, true);

	if (error)
		in_memory_refuse(&series->in_memory, series->target->pid, &scheduler->setup.memory, error);
}

/* The error is logged once; clients that wait are told each time, and the request is dropped. */
static void give_up(struct scheduler *scheduler, struct snapshot_series *series, bool periodic, int error)
{
	pid_t pid = series->target->pid;

	series->failed++;
	if (error != series->error)
		log_line_of(
		    target_user(series->target), "no snapshot of pid %d: %s", (int)pid, strerror(-error));
	if (periodic)
		return;
	refuse_askers(scheduler, series, error);
	forget_wish(series);
}

static void take_numbered(
    struct scheduler *scheduler, struct snapshot_series *series, const struct snapshot_request *request)
{
	/* What a program requests itself is not urgent: others' profiles would wait for those of one that
	 * does so all the time. */
	int error = take(scheduler, series, request, !request->periodic && series->wanted_at_once);

	if (error)
		give_up(scheduler, series, request->periodic, error);
	series->error = error;
	if (series->source->kind->taken)
		series->source->kind->taken(series->source, series->target, request, error);
}

static void take_next(struct scheduler *scheduler, struct snapshot_series *series, const char *cause,
    const char *word, bool periodic)
{
	char name[96];
	const struct snapshot_request request = {SNAPSHOT_NUMBERED, name, cause, periodic,
	    !periodic && series->wanted_by_hand, !periodic && series->wanted_by_a_rule};

	snprintf(name, sizeof(name), "%04" PRIu32 "%s%s", series->next, word[0] ? "-" : "", word);
	for (char *slash = name; (slash = strchr(slash, '/'));)
		*slash = '_'; /* else only the part after the last slash would be kept */
	take_numbered(scheduler, series, &request);
	series->next += !series->error;
}

/* Who has asked, a client or the program itself, need not wait. */
static void refuse(struct scheduler *scheduler, struct snapshot_series *series)
{
	static const struct snapshot_request request = {SNAPSHOT_NUMBERED, "", "", false, false, false};

	give_up(scheduler, series, false, -ECANCELED);
	series->error = -ECANCELED;
	if (series->source->kind->taken)
		series->source->kind->taken(series->source, series->target, &request, -ECANCELED);
}

void scheduler_pause(struct scheduler *scheduler, bool paused)
{
	scheduler->paused = paused;
}

void scheduler_take(
    struct snapshot_source *source, struct target *target, const struct snapshot_request *request)
{
	struct snapshot_series *series = series_of(source, target);
	struct snapshot_request beside = *request;

	beside.periodic = true; /* the heap's own answers who asked */
	if (series)
		take_numbered(source->scheduler, series, &beside);
}

/* ---- the tick */

static bool is_early(const struct snapshot_series *series, uint64_t interval_ns)
{
	return schedule_is_early(interval_ns, series->due_ns - series->begin_ns);
}

static void tend_interval(struct scheduler *scheduler, struct snapshot_series *series, uint64_t now_ns)
{
	const uint64_t interval_ns = interval_of(scheduler, series->source, series->target);
	const bool waited = series->waiting;
	bool due = snapshot_series_look(series, interval_ns, now_ns) == SNAPSHOT_SERIES_DUE;

	series->skipped += due && scheduler->paused;
	series->waiting = due && !scheduler->paused &&
	    series->source->kind->has(series->source, series->target, SNAPSHOT_DUE);
	if (series->waiting && !waited && is_early(series, interval_ns))
		series->waiting = scheduler_allows_early(scheduler, now_ns);
	if (due && !series->waiting)
		snapshot_series_advance(series, interval_ns, now_ns);
}

/* What does not find a free child waits, until the next one is due. */
static void take_periodic(struct scheduler *scheduler, uint64_t now_ns)
{
	struct snapshot_series *series;
	char cause[64];

	while ((series = scheduler_next_in_turn(scheduler))) {
		const uint64_t interval_ns = interval_of(scheduler, series->source, series->target);

		schedule_describe(interval_ns, series->due_ns - series->begin_ns, cause, sizeof(cause));
		take_next(scheduler, series, cause, "", true);
		series->waiting = false;
		series->turn = ++scheduler->turn;
		snapshot_series_advance(series, interval_ns, now_ns);
	}
}

/* When to look at it again for the clock's sake. */
static uint64_t next_due_ns(
    const struct scheduler *scheduler, const struct snapshot_series *series, uint64_t now_ns)
{
	/* If it waits for the writer, we look again when a snapshot has been written. */
	if (!interval_of(scheduler, series->source, series->target) || series->writing || series->waiting)
		return UINT64_MAX;
	return series->due_ns < now_ns + 1000000 ? now_ns + 1000000 : series->due_ns;
}

static void tend_target(struct scheduler *scheduler, struct snapshot_series *series, uint64_t now_ns)
{
	struct target *target = series->target;
	bool rarely = target->readable &&
	    (!series->refreshed_ns || now_ns - series->refreshed_ns >= scheduler->refresh_ns);

	if (rarely) {
		series->refreshed_ns = now_ns;
		oom_watch_update(&series->death, target->pid);
		if (target->threads)
			threads_read(target->threads, target->pid);
	}
	if (series->source->kind->look)
		series->source->kind->look(series->source, target, now_ns, rarely);
	if (series->wanted && scheduler->paused)
		refuse(scheduler, series);
	else if (series->wanted && !series->writing)
		take_next(scheduler, series, series->wanted_cause, series->wanted_name, false);
	if (in_memory_is_due(&series->in_memory))
		take_in_memory(scheduler, series);
	tend_interval(scheduler, series, now_ns);
}

static void tend_targets(struct scheduler *scheduler, uint64_t now_ns)
{
	scheduler->look_ns = now_ns + LOOK_NS;
	scheduler->due_ns = UINT64_MAX;
	uint64_t count = 0;
	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series)
		if (!series->target->closed) {
			tend_target(scheduler, series, now_ns);
			count++;
		}
	scheduler->refresh_ns = count * scheduler->setup.refresh_share_ns;
	if (scheduler->refresh_ns < REFRESH_NS)
		scheduler->refresh_ns = REFRESH_NS;
	take_periodic(scheduler, now_ns);
	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series) {
		uint64_t due_ns =
		    series->target->closed ? UINT64_MAX : next_due_ns(scheduler, series, now_ns);

		scheduler->due_ns = due_ns < scheduler->due_ns ? due_ns : scheduler->due_ns;
	}
}

void scheduler_hurry(struct scheduler *scheduler)
{
	scheduler->look_ns = 0;
}

uint64_t scheduler_tend(struct scheduler *scheduler, uint64_t now_ns)
{
	writer_tend(scheduler->writer, now_ns);
	if (now_ns >= scheduler->look_ns || now_ns >= scheduler->due_ns)
		tend_targets(scheduler, now_ns);
	return scheduler->due_ns > now_ns ? scheduler->due_ns - now_ns : 0;
}

/* ---- targets come and go */

static void watch(void *context, struct target *target)
{
	struct snapshot_source *source = context;

	(void)series_of(source, target); /* else: is tried again when it ends */
	source->scheduler->look_ns = 0;  /* the process may end soon, so look at once */
}

static void release(struct snapshot_source *source, struct target *target)
{
	source->scheduler->closing--;
	snapshot_series_free(target->series);
	target->series = NULL;
	source->kind->release(source, target);
}

/* Nothing was taken for whoever is left. */
static void answer_all(struct scheduler *scheduler, struct target *target, int error)
{
	struct snapshot_series *series = target->series;

	refuse_askers(scheduler, series, error ? error : -ESRCH);
	in_memory_refuse(&series->in_memory, target->pid, &scheduler->setup.memory, -ESRCH);
}

static int take_last(struct scheduler *scheduler, struct target *target)
{
	char cause[1024];

	process_end_cause(target, &target->series->death, cause, sizeof(cause));
	const struct snapshot_request request = {
	    SNAPSHOT_EXIT, target->end == TARGET_DETACHED ? "detach" : "exit", cause, false, false, false};
	target->series->jobs++; /* the target must stay, also if this one fails */
	int error = take(scheduler, target->series, &request, target->command);
	scheduler->ended += !error;
	target->series->jobs--;
	return error;
}

/* What the process asked for and then ended, before we looked. One of its snapshots that is being written
 * will do, since the last profile comes too. */
static void take_requested(struct snapshot_source *source, struct target *target)
{
	struct snapshot_series *series = target->series;

	if (!series || series->wanted || source->scheduler->paused || !source->kind->look_for_requests)
		return;
	source->kind->look_for_requests(source, target, clock_now_ns());
	if (series->wanted && !series->writing)
		take_next(source->scheduler, series, series->wanted_cause, series->wanted_name, false);
}

static void close_target(void *context, struct target *target)
{
	struct snapshot_source *source = context;
	struct scheduler *scheduler = source->scheduler;
	int error = 0;

	scheduler->closing++;
	if (target->end == TARGET_GONE && exit_status_read(target->pidfd, target->pid, &target->status) == 0)
		target->end = TARGET_EXITED;
	take_requested(source, target);
	bool wanted = (target->command && (target->end != TARGET_EXEC || target->unseen[0])) ||
	    (target->series && target->series->next > 1) || source->kind->has(source, target, SNAPSHOT_END);
	if (!wanted && source->kind->omitted)
		source->kind->omitted(source, target);
	else if (wanted && scheduler->paused)
		source->kind->dropped(source, target, SNAPSHOT_DROP_PAUSED);
	else if (wanted && scheduler->setup.may_wait &&
	    !scheduler->setup.may_wait(scheduler->setup.context, target))
		source->kind->dropped(source, target, SNAPSHOT_DROP_CROWD);
	else if (wanted)
		error = series_of(source, target) ? take_last(scheduler, target) : -ENOMEM;
	if (error)
		log_line_of(
		    target_user(target), "no profile of pid %d: %s", (int)target->pid, strerror(-error));
	if (target->series)
		answer_all(scheduler, target, error);
	if (!target->series || !target->series->jobs)
		release(source, target);
}

struct target_listener scheduler_listener(struct snapshot_source *source)
{
	return (struct target_listener){.watched = watch, .closed = close_target, .context = source};
}

/* ---- what the writer has done */

static void report(struct scheduler *scheduler, const struct snapshot *s, int error)
{
	struct snapshot_source *source = s->target->series->source;
	int verbosity = scheduler->setup.settings->verbosity;
	bool last = s->kind == SNAPSHOT_EXIT;
	uint64_t before = s->target->series->failed;
	char count[64] = ""; /* no later profile has it */

	if (before)
		snprintf(count, sizeof(count), "; snapshots not written before it: %" PRIu64, before);
	if (last && error) /* nothing tries again, so -q does not mean this */
		log_line_of(target_user(s->target), "profile not written: %s: %s%s", s->path,
		    strerror(-error), count);
	else if (error && error != scheduler->error) /* a repeated error is counted, not logged */
		log_line(
		    "profile not written: %s: %s; the next snapshot tries again", s->path, strerror(-error));
	else if (!last && !error &&
	    verbosity >= (s->by_a_rule ? 0 : 1)) /* a crossed threshold is news to the user */
		log_line_of(target_user(s->target), "pid %d: snapshot %s: %s", (int)s->target->pid, s->cause,
		    s->path);
	if (last && verbosity >= 0)
		source->kind->ended(source, s, error);
	if (error) {
		scheduler->failed++;
	} else if (scheduler->failed) {
		log_line("writing profiles works again (%" PRIu64 " failed before)", scheduler->failed);
		scheduler->failed = 0;
	}
	scheduler->error = error;
}

static void on_written(void *context, const struct writer_item *item, int error)
{
	struct snapshot *s = (struct snapshot *)(uintptr_t)item;
	struct scheduler *scheduler = context;
	struct snapshot_series *series = s->target->series;

	series->jobs--;
	if (s->kind == SNAPSHOT_MEMORY) { /* nothing is logged: who asked is told */
		in_memory_end(&series->in_memory, s, &scheduler->setup.memory, error);
	} else {
		report(scheduler, s, error);
		series->failed += error != 0;
	}
	if (s->kind == SNAPSHOT_NUMBERED) {
		series->writing = false;
		if (series->source->kind->written)
			series->source->kind->written(series, s, error);
		if (!s->by_hand)
			series->source->kind->keep(series, s,
			    s->target->plan ? s->target->plan->keep : scheduler->setup.settings->keep);
	}
	answer(scheduler, s->askers, s->asker_count, s->target->pid, s->path, error);
	scheduler->look_ns = 0;
	if (s->target->closed && !series->jobs)
		release(series->source, s->target);
}

void scheduler_reap(struct scheduler *scheduler, pid_t pid, int status)
{
	writer_reap(scheduler->writer, pid, status);
}

void scheduler_hurry_writing(struct scheduler *scheduler, bool hurry)
{
	writer_set_hurry(scheduler->writer, hurry);
}

/* ---- beginning and end */

struct scheduler *scheduler_new(const struct scheduler_setup *setup)
{
	struct scheduler *scheduler = calloc(1, sizeof(*scheduler));

	if (!scheduler)
		return NULL;
	scheduler->setup = *setup;
	scheduler->began_unix_ns = setup->began_unix_ns ? setup->began_unix_ns : clock_unix_ns();
	scheduler->began_ns = setup->began_unix_ns ? setup->began_ns : clock_now_ns();
	scheduler->began_pid = setup->began_unix_ns ? setup->began_pid : getpid();
	scheduler->refresh_ns = REFRESH_NS;
	scheduler->writer = writer_new(on_written, scheduler);
	if (scheduler->writer) {
		writer_set_pace(scheduler->writer, &setup->pace);
		return scheduler;
	}
	free(scheduler);
	return NULL;
}

void scheduler_free(struct scheduler *scheduler)
{
	if (!scheduler)
		return;
	writer_free(scheduler->writer);
	while (scheduler->series)
		snapshot_series_free(scheduler->series);
	free(scheduler);
}

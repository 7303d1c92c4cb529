/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's snapshots, from the order to the source until they are on disk. */
#include "sampler/write/scheduler.h"
#include "sampler/write/scheduler_state.h"

#include "pprof/model/origin.h"
#include "pprof/text/log_line.h"
#include "sampler/intake/target_plan.h"
#include "sampler/write/end_phrase.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- paths */

int scheduler_reserve(const struct scheduler *scheduler, const struct target *target, const char *name,
    char *path, size_t path_bytes)
{
	const struct scheduler_setup *setup = &scheduler->setup;
	const struct output_facts facts = {
	    .program = target->title, .pid = target->pid, .snapshot = name, .seconds = time(NULL)};

	if (setup->reserve)
		return setup->reserve(setup->context, target, name, path, path_bytes);
	return output_reserve(setup->output, &facts, path, path_bytes);
}

char *scheduler_reserve_beside(
    const struct scheduler *scheduler, const struct target *target, const char *name)
{
	char path[PATH_MAX], pid[END_PHRASE_PID_BYTES];
	int error = scheduler_reserve(scheduler, target, name, path, sizeof(path));

	if (error && !target->series->beside_error)
		log_line_of(target_user(target), "no file %s of %s: %s", name,
		    end_phrase_pid(target->pid, pid), strerror(-error));
	target->series->beside_error = error;
	return error ? NULL : strdup(path);
}

/* ---- answers to clients */

static void answer(struct scheduler *scheduler, const uint64_t *askers, uint32_t count, pid_t pid,
    const char *path, int error)
{
	for (uint32_t i = 0; i < count; i++)
		scheduler->setup.answer(scheduler->setup.context, askers[i], pid, path, error);
}

static void refuse_askers(struct scheduler *scheduler, struct snapshot_series *series, int error)
{
	uint64_t askers[SNAPSHOT_ASKERS];
	const uint32_t count = snapshot_request_take_askers(&series->numbered, askers);

	snapshot_request_step(&series->numbered, REQUEST_ON_DROP);
	answer(scheduler, askers, count, series->target->pid, "", error);
}

static void refuse_memory(struct scheduler *scheduler, struct snapshot_series *series, int error)
{
	const struct in_memory_giver *giver = &scheduler->setup.memory;
	uint64_t askers[SNAPSHOT_ASKERS];
	const uint32_t count = snapshot_request_take_askers(&series->in_memory, askers);

	snapshot_request_step(&series->in_memory, REQUEST_ON_DROP);
	for (uint32_t i = 0; i < count; i++)
		giver->give(giver->context, askers[i], series->target->pid, error);
}

/* Each client gets a descriptor of its own. */
static void give_memory(struct scheduler *scheduler, struct snapshot *snapshot, int error)
{
	const struct in_memory_giver *giver = &scheduler->setup.memory;

	error = error ? error : sink_memory_seal(&snapshot->memory);
	for (uint32_t i = 0; i < snapshot->asker_count; i++) {
		int fd = error ? error : fcntl(snapshot->memory.fd, F_DUPFD_CLOEXEC, 0);

		giver->give(
		    giver->context, snapshot->askers[i], snapshot->target->pid, fd == -1 ? -errno : fd);
	}
	snapshot->asker_count = 0;
	sink_memory_close(&snapshot->memory);
}

void scheduler_answer_all(struct scheduler *scheduler, struct snapshot_series *series, int error)
{
	refuse_askers(scheduler, series, error ? error : -ESRCH);
	refuse_memory(scheduler, series, -ESRCH);
}

/* ---- taking */

/* Which session and process the snapshot belongs to. Each profile of a process has the same words, so its
 * start is reckoned from the session's, once. */
static void identify(
    const struct scheduler *scheduler, const struct target *target, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, ORIGIN_IDENTITY_FORMAT, scheduler->began_unix_ns,
	    (int)scheduler->began_pid, scheduler_start_unix_ns(scheduler, target));
}

/* The snapshot takes over the clients that wait. The last profile answers a request that was not taken. */
static int take_over(struct snapshot *snapshot, struct snapshot_series *series, enum request_event event)
{
	const bool in_memory = snapshot->kind == SNAPSHOT_MEMORY;
	struct snapshot_request *request = in_memory ? &series->in_memory : &series->numbered;

	if (in_memory) {
		int error = sink_memory_open(&snapshot->memory);

		if (error)
			return error;
		snapshot->sink = &snapshot->memory.base;
		snapshot->item.series = NULL; /* it replaces no file, so it waits for no other */
	}
	if (event != REQUEST_ON_BESIDE)
		snapshot->asker_count = snapshot_request_take_askers(request, snapshot->askers);
	snapshot_request_step(request, event);
	return 0;
}

/* A snapshot that a program requests is not urgent: else a program that does so all the time would keep the
 * profiles of all others waiting. */
static bool is_urgent(
    const struct target *target, const struct snapshot_order *order, enum request_event event)
{
	if (order->kind == SNAPSHOT_EXIT)
		return target->command;
	return event != REQUEST_ON_BESIDE && (order->by & SNAPSHOT_BY_CLIENT);
}

static int take(struct scheduler *scheduler, struct snapshot_series *series,
    const struct snapshot_order *order, enum request_event event)
{
	const struct snapshot_settings *settings = scheduler->setup.settings;
	struct snapshot *snapshot = NULL;
	int error = series->source->kind->take(series->source, series->target, order, &snapshot);

	if (error)
		return error;
	snapshot->kind = order->kind;
	snapshot->by = order->by;
	snapshot->target = series->target;
	snapshot->sink = settings->sink;
	snapshot->debuginfod = settings->debuginfod;
	snapshot->item.series = series;
	snapshot->item.detail = settings->detail;
	snapshot->item.urgent = is_urgent(series->target, order, event);
	snapshot->item.account = target_account(series->target);
	snprintf(snapshot->cause, sizeof(snapshot->cause), "%s, %s", order->name, order->cause);
	snprintf(snapshot->host, sizeof(snapshot->host), "%s", scheduler->setup.output->host);
	identify(scheduler, series->target, snapshot->identity, sizeof(snapshot->identity));
	error = take_over(snapshot, series, event);
	if (error) {
		snapshot->item.discard(&snapshot->item);
		return error;
	}
	series->in_writer++;
	writer_submit(scheduler->writer, &snapshot->item);
	return 0;
}

/* The error is logged once. Clients that wait are told each time, and the request is dropped. */
static void give_up(
    struct scheduler *scheduler, struct snapshot_series *series, enum request_event event, int error)
{
	const struct target *target = series->target;
	char pid[END_PHRASE_PID_BYTES];

	series->failed++;
	if (error != series->error)
		log_line_of(target_user(target), "no snapshot of %s: %s", end_phrase_pid(target->pid, pid),
		    strerror(-error));
	if (event == REQUEST_ON_TAKE)
		refuse_askers(scheduler, series, error);
}

static void take_numbered(struct scheduler *scheduler, struct snapshot_series *series,
    const struct snapshot_order *order, enum request_event event)
{
	struct snapshot_source *source = series->source;
	int error = take(scheduler, series, order, event);

	if (error)
		give_up(scheduler, series, event, error);
	series->error = error;
	if (source->kind->taken)
		source->kind->taken(source, series->target, order, error);
}

static void take_next(struct scheduler *scheduler, struct snapshot_series *series, unsigned int by,
    const char *cause, const char *word)
{
	char name[96];
	const struct snapshot_order order = {SNAPSHOT_NUMBERED, name, cause, by};

	snprintf(name, sizeof(name), "%04" PRIu32 "%s%s", series->next_number, word[0] ? "-" : "", word);
	for (char *slash = name; (slash = strchr(slash, '/'));)
		*slash = '_'; /* output.h keeps only the part after the last slash */
	take_numbered(scheduler, series, &order, REQUEST_ON_TAKE);
	series->next_number += !series->error;
}

void scheduler_take_periodic(struct scheduler *scheduler, struct snapshot_series *series, const char *cause)
{
	take_next(scheduler, series, SNAPSHOT_BY_CLOCK, cause, "");
}

void scheduler_take_asked(struct scheduler *scheduler, struct snapshot_series *series)
{
	const struct snapshot_request *request = &series->numbered;

	take_next(scheduler, series, request->by, request->cause, request->name);
}

void scheduler_take_memory(struct scheduler *scheduler, struct snapshot_series *series)
{
	const struct snapshot_request *request = &series->in_memory;
	const struct snapshot_order order = {SNAPSHOT_MEMORY, "now", request->cause, request->by};
	int error = take(scheduler, series, &order, REQUEST_ON_TAKE);

	if (error)
		refuse_memory(scheduler, series, error);
}

void scheduler_take_beside(
    struct snapshot_source *source, struct target *target, const struct snapshot_order *order)
{
	struct snapshot_series *series = scheduler_series(source, target);

	if (series)
		take_numbered(source->scheduler, series, order, REQUEST_ON_BESIDE);
}

int scheduler_take_last(struct scheduler *scheduler, struct target *target)
{
	struct snapshot_series *series = target->series;
	char cause[1024];
	const struct snapshot_order order = {
	    SNAPSHOT_EXIT, target->end == TARGET_DETACHED ? "detach" : "exit", cause, 0};

	end_phrase_cause(target, &series->death, cause, sizeof(cause));
	series->in_writer++; /* the target must stay, even if this snapshot fails */
	int error = take(scheduler, series, &order, REQUEST_ON_DROP);
	scheduler->ended += !error;
	series->in_writer--;
	return error;
}

void scheduler_refuse(struct scheduler *scheduler, struct snapshot_series *series)
{
	static const struct snapshot_order order = {SNAPSHOT_NUMBERED, "", "", 0};
	struct snapshot_source *source = series->source;

	give_up(scheduler, series, REQUEST_ON_TAKE, -ECANCELED);
	series->error = -ECANCELED;
	if (source->kind->taken)
		source->kind->taken(source, series->target, &order, -ECANCELED);
}

/* ---- what the writer has done */

static void log_written(struct scheduler *scheduler, const struct snapshot *snapshot, int error)
{
	const struct target *target = snapshot->target;
	/* A crossed threshold is news to the user. */
	const int least_verbosity = snapshot->by & SNAPSHOT_BY_THRESHOLD ? 0 : 1;
	const uint64_t before = target->series->failed;
	const bool last = snapshot->kind == SNAPSHOT_EXIT;
	char pid[END_PHRASE_PID_BYTES], count[64] = ""; /* no later profile counts them */

	if (before)
		snprintf(count, sizeof(count), "; snapshots not written before it: %" PRIu64, before);
	if (last && error) /* no later snapshot tries again, so it is said with -q too */
		log_line_of(target_user(target), "profile not written: %s: %s%s", snapshot->path,
		    strerror(-error), count);
	else if (error && error != scheduler->error) /* a repeated error is counted, not logged */
		log_line("profile not written: %s: %s; the next snapshot tries again", snapshot->path,
		    strerror(-error));
	else if (!last && !error && scheduler->setup.settings->verbosity >= least_verbosity)
		log_line_of(target_user(target), "%s: snapshot %s: %s", end_phrase_pid(target->pid, pid),
		    snapshot->cause, snapshot->path);
}

static void count_written(struct scheduler *scheduler, int error)
{
	if (error) {
		scheduler->failed++;
	} else if (scheduler->failed) {
		log_line("writing profiles works again (%" PRIu64 " failed before)", scheduler->failed);
		scheduler->failed = 0;
	}
	scheduler->error = error;
}

static void keep_files(
    const struct scheduler *scheduler, struct snapshot_series *series, const struct snapshot *snapshot)
{
	const struct target_plan *plan = snapshot->target->plan;

	if (!(snapshot->by & SNAPSHOT_BY_HAND))
		kept_files_add(&series->kept, snapshot->files, snapshot->file_count,
		    snapshot->by & SNAPSHOT_BY_THRESHOLD, plan ? plan->keep : scheduler->setup.settings->keep,
		    snapshot->sink);
}

void scheduler_on_written(void *context, const struct writer_item *item, int error)
{
	struct snapshot *snapshot = (struct snapshot *)(uintptr_t)item;
	struct snapshot_series *series = snapshot->target->series;
	struct snapshot_source *source = series->source;
	struct scheduler *scheduler = context;

	series->in_writer--;
	if (snapshot->kind == SNAPSHOT_MEMORY) { /* nothing is logged: the client is told */
		give_memory(scheduler, snapshot, error);
		snapshot_request_step(&series->in_memory, REQUEST_ON_WRITTEN);
	} else {
		log_written(scheduler, snapshot, error);
		count_written(scheduler, error);
		series->failed += error != 0;
		if (source->kind->written)
			source->kind->written(source, snapshot, error);
	}
	if (snapshot->kind == SNAPSHOT_NUMBERED) {
		snapshot_request_step(&series->numbered, REQUEST_ON_WRITTEN);
		keep_files(scheduler, series, snapshot);
	}
	answer(
	    scheduler, snapshot->askers, snapshot->asker_count, snapshot->target->pid, snapshot->path, error);
	scheduler->look_ns = 0;
	if (snapshot->target->closed && !series->in_writer)
		scheduler_release(source, snapshot->target);
}

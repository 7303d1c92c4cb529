/* SPDX-License-Identifier: Apache-2.0 */
/* When a snapshot is written: the look at each target, the turns of those that are due, and the end. */
#include "sampler/write/scheduler.h"
#include "sampler/write/scheduler_state.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/intake/target_plan.h"
#include "sampler/write/end_phrase.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LOOK_NS = 50 * 1000000,      /* between looks at targets */
	REFRESH_NS = 1000 * 1000000, /* between looks at threads and cgroups, at least */
	SOON_NS = 1000000,
};

/* The early snapshots of all processes together. If fifty processes begin at once, all of theirs are taken; a
 * crowd of short-lived processes writes no more than this. */
static const struct throttle_rate early_rate = {.burst = 256, .units = 1, .step_ns = CLOCK_NS_PER_S};

static uint64_t interval_of(
    const struct scheduler *scheduler, const struct snapshot_source *source, const struct target *target)
{
	const uint64_t interval_ns =
	    target->plan ? target->plan->interval_ns : scheduler->setup.settings->interval_ns;

	return interval_ns == INTERVAL_USUAL && !source->kind->grows ? INTERVAL_USUAL_NS : interval_ns;
}

/* A process that an earlier sampler knew has had its snapshots, at the same times. */
struct snapshot_series *scheduler_series(struct snapshot_source *source, struct target *target)
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

/* ---- the clock */

static bool is_early(const struct snapshot_series *series, uint64_t interval_ns)
{
	const struct interval_clock *periodic = &series->periodic;

	return interval_is_early(interval_ns, periodic->due_ns - periodic->begin_ns);
}

/* Does a snapshot that is due wait for its turn? An early snapshot needs room among all early ones. */
static bool may_wait(
    struct scheduler *scheduler, struct snapshot_series *series, uint64_t interval_ns, uint64_t now_ns)
{
	if (scheduler->paused ||
	    !series->source->kind->has(series->source, series->target, SNAPSHOT_REASON_DUE))
		return false;
	return series->numbered.state != REQUEST_NONE || !is_early(series, interval_ns) ||
	    throttle_take(&scheduler->early, &early_rate, now_ns);
}

static void tend_interval(struct scheduler *scheduler, struct snapshot_series *series, uint64_t now_ns)
{
	const uint64_t interval_ns = interval_of(scheduler, series->source, series->target);
	const bool due = interval_clock_look(&series->periodic, interval_ns, now_ns);
	const bool waits = due && may_wait(scheduler, series, interval_ns, now_ns);

	snapshot_request_step(&series->numbered, waits ? REQUEST_ON_DUE : REQUEST_ON_NOT_DUE);
	series->periodic.skipped += due && scheduler->paused;
	if (due && !waits)
		interval_clock_advance(&series->periodic, interval_ns, now_ns);
}

/* The process whose last periodic snapshot was the longest ago, among those that wait and for whose account
 * the writer has room. NULL if there is none. Where writing takes longer than the interval, something is due
 * whenever a child is free: so each process gets its turn. */
static struct snapshot_series *next_in_turn(const struct scheduler *scheduler)
{
	struct snapshot_series *found = NULL;
	uint64_t full = 0; /* an account for which there is no room */
	bool one_is_full = false;

	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series) {
		if (series->numbered.state != REQUEST_DUE || series->target->closed ||
		    (found && series->turn >= found->turn))
			continue;
		const uint64_t account = target_account(series->target);
		if (one_is_full && account == full)
			continue;
		if (writer_can_start(scheduler->writer, account)) {
			found = series;
		} else {
			one_is_full = true;
			full = account;
		}
	}
	return found;
}

/* A snapshot for which the writer has no room waits until the next one is due. */
static void take_periodic(struct scheduler *scheduler, uint64_t now_ns)
{
	struct snapshot_series *series;
	char cause[64];

	while ((series = next_in_turn(scheduler))) {
		const uint64_t interval_ns = interval_of(scheduler, series->source, series->target);
		struct interval_clock *periodic = &series->periodic;

		interval_describe(interval_ns, periodic->due_ns - periodic->begin_ns, cause, sizeof(cause));
		scheduler_take_periodic(scheduler, series, cause);
		series->turn = ++scheduler->turn;
		interval_clock_advance(periodic, interval_ns, now_ns);
	}
}

/* When to look at a target again for the clock's sake. While a snapshot of it waits or is written, the end of
 * writing is the next reason to look. */
static uint64_t next_due_ns(
    const struct scheduler *scheduler, const struct snapshot_series *series, uint64_t now_ns)
{
	const uint64_t due_ns = series->periodic.due_ns;

	if (!interval_of(scheduler, series->source, series->target) || series->numbered.state != REQUEST_NONE)
		return UINT64_MAX;
	return due_ns < now_ns + SOON_NS ? now_ns + SOON_NS : due_ns;
}

/* ---- the look at each target */

static void tend_requests(struct scheduler *scheduler, struct snapshot_series *series)
{
	if (snapshot_request_is_asked(&series->numbered) && scheduler->paused)
		scheduler_refuse(scheduler, series);
	else if (series->numbered.state == REQUEST_ASKED)
		scheduler_take_asked(scheduler, series);
	if (series->in_memory.state == REQUEST_ASKED)
		scheduler_take_memory(scheduler, series);
}

static void tend_target(struct scheduler *scheduler, struct snapshot_series *series, uint64_t now_ns)
{
	const struct snapshot_source_kind *kind = series->source->kind;
	struct target *target = series->target;
	bool rarely = target->readable &&
	    (!series->refreshed_ns || now_ns - series->refreshed_ns >= scheduler->refresh_ns);

	if (rarely) {
		series->refreshed_ns = now_ns;
		oom_watch_update(&series->death, target->pid);
		if (target->threads)
			threads_read(target->threads, target->pid);
	}
	if (kind->look)
		kind->look(
		    series->source, target, now_ns, rarely ? SNAPSHOT_LOOK_RARELY : SNAPSHOT_LOOK_OFTEN);
	tend_requests(scheduler, series);
	tend_interval(scheduler, series, now_ns);
}

static void tend_targets(struct scheduler *scheduler, uint64_t now_ns)
{
	uint64_t count = 0;

	scheduler->look_ns = now_ns + LOOK_NS;
	scheduler->due_ns = UINT64_MAX;
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

uint64_t scheduler_tend(struct scheduler *scheduler, uint64_t now_ns)
{
	writer_tend(scheduler->writer, now_ns);
	if (now_ns >= scheduler->look_ns || now_ns >= scheduler->due_ns)
		tend_targets(scheduler, now_ns);
	return scheduler->due_ns > now_ns ? scheduler->due_ns - now_ns : 0;
}

void scheduler_hurry(struct scheduler *scheduler)
{
	scheduler->look_ns = 0;
}

void scheduler_pause(struct scheduler *scheduler, bool paused)
{
	scheduler->paused = paused;
}

/* ---- targets come and go */

static void watch(void *context, struct target *target)
{
	struct snapshot_source *source = context;

	(void)scheduler_series(source, target); /* if it fails: again when the target ends */
	source->scheduler->look_ns = 0;         /* the process may end soon, so look at once */
}

void scheduler_release(struct snapshot_source *source, struct target *target)
{
	source->scheduler->closing--;
	snapshot_series_free(target->series);
	target->series = NULL;
	source->kind->release(source, target);
}

/* The process may have asked for a snapshot and ended before the next look. If one of its snapshots is being
 * written, the last profile answers the request. */
static void take_requested(struct snapshot_source *source, struct target *target)
{
	struct snapshot_series *series = target->series;

	if (!series || snapshot_request_is_asked(&series->numbered) || source->scheduler->paused ||
	    !source->kind->look)
		return;
	source->kind->look(source, target, clock_now_ns(), SNAPSHOT_LOOK_LAST);
	if (series->numbered.state == REQUEST_ASKED)
		scheduler_take_asked(source->scheduler, series);
}

/* Does an ended target get a last profile? Sets *why if not. COMMAND gets one always; so does a process that
 * has left a profile before. */
static bool has_last(struct snapshot_source *source, const struct target *target, enum snapshot_drop *why)
{
	const struct scheduler *scheduler = source->scheduler;
	const struct scheduler_setup *setup = &scheduler->setup;

	if (!(target->command && (target->end != TARGET_EXEC || target->unprofiled[0])) &&
	    !(target->series && target->series->next_number > 1) &&
	    !source->kind->has(source, target, SNAPSHOT_REASON_END))
		*why = SNAPSHOT_DROP_FEW;
	else if (scheduler->paused)
		*why = SNAPSHOT_DROP_PAUSED;
	else if (setup->may_wait && !setup->may_wait(setup->context, target))
		*why = SNAPSHOT_DROP_CROWD;
	else if (source->kind->may_leave && !source->kind->may_leave(source, target))
		*why = SNAPSHOT_DROP_USER;
	else
		return true;
	return false;
}

static void close_target(void *context, struct target *target)
{
	struct snapshot_source *source = context;
	struct scheduler *scheduler = source->scheduler;
	enum snapshot_drop why;
	int error = 0;
	char pid[END_PHRASE_PID_BYTES];

	scheduler->closing++;
	take_requested(source, target);
	if (has_last(source, target, &why))
		error = scheduler_series(source, target) ? scheduler_take_last(scheduler, target) : -ENOMEM;
	else if (source->kind->dropped)
		source->kind->dropped(source, target, why);
	if (error)
		log_line_of(target_user(target), "no profile of %s: %s", end_phrase_pid(target->pid, pid),
		    strerror(-error));
	if (target->series)
		scheduler_answer_all(scheduler, target->series, error);
	if (!target->series || !target->series->in_writer)
		scheduler_release(source, target);
}

struct target_listener scheduler_listener(struct snapshot_source *source)
{
	return (struct target_listener){.watched = watch, .closed = close_target, .context = source};
}

/* ---- the sampler's users ask for snapshots; the next look takes them */

static bool ask(
    struct scheduler *scheduler, struct snapshot_series *series, const char *cause, uint64_t asker)
{
	if (series->target->closed ||
	    !series->source->kind->has(series->source, series->target, SNAPSHOT_REASON_ASKED) ||
	    !snapshot_request_ask(&series->numbered, SNAPSHOT_BY_CLIENT, cause, NULL, asker))
		return false;
	scheduler->look_ns = 0;
	return true;
}

uint32_t scheduler_ask_all(struct scheduler *scheduler, const char *cause, uint64_t asker)
{
	uint32_t count = 0;

	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series)
		count += ask(scheduler, series, cause, asker);
	return count;
}

uint32_t scheduler_ask(struct scheduler *scheduler, pid_t pid, uint64_t asker)
{
	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series)
		if (series->target->pid == pid && series->target->readable &&
		    ask(scheduler, series, "heaptap snapshot", asker))
			return 1;
	return 0;
}

uint32_t scheduler_ask_memory(struct scheduler *scheduler, pid_t pid, uint64_t asker)
{
	uint32_t count = 0;

	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series) {
		const struct target *target = series->target;

		if ((pid && (target->pid != pid || !target->readable)) || target->closed ||
		    !series->source->kind->in_memory ||
		    !snapshot_request_ask(&series->in_memory, SNAPSHOT_BY_CLIENT,
		        "asked for through the control socket", NULL, asker))
			continue;
		scheduler->look_ns = 0;
		count++;
		if (pid)
			break;
	}
	return count;
}

/* A snapshot in memory that nobody waits for any more is not taken. */
void scheduler_forget(struct scheduler *scheduler, uint64_t asker)
{
	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series) {
		snapshot_request_forget(&series->numbered, asker);
		snapshot_request_forget(&series->in_memory, asker);
		if (!series->in_memory.asker_count)
			snapshot_request_step(&series->in_memory, REQUEST_ON_DROP);
	}
}

/* ---- what the scheduler tells of itself and of its targets */

const struct scheduler_setup *scheduler_setup(const struct scheduler *scheduler)
{
	return &scheduler->setup;
}

bool scheduler_is_enough(const struct scheduler *scheduler, const struct target *target, uint64_t samples)
{
	const bool last_program = target->command && target->end != TARGET_EXEC;

	return samples > 0 && (last_program || samples >= scheduler->setup.settings->min_samples);
}

int64_t scheduler_start_unix_ns(const struct scheduler *scheduler, const struct target *target)
{
	return scheduler->began_unix_ns + (int64_t)(target->start_ns - scheduler->began_ns);
}

void scheduler_each(const struct scheduler *scheduler, const struct snapshot_source *source,
    void (*visit)(void *context, const struct target *target, int64_t start_unix_ns), void *context)
{
	for (const struct snapshot_series *series = scheduler->series; series; series = series->next_series)
		if (series->source == source && !series->target->closed && series->target->readable)
			visit(context, series->target, scheduler_start_unix_ns(scheduler, series->target));
}

bool scheduler_serves(const struct scheduler *scheduler, pid_t pid)
{
	for (const struct snapshot_series *series = scheduler->series; series; series = series->next_series)
		if (series->target->pid == pid)
			return true;
	return false;
}

void scheduler_progress(const struct scheduler *scheduler, uint64_t *written, uint64_t *ended)
{
	*ended = scheduler->ended;
	*written = scheduler->ended > scheduler->closing ? scheduler->ended - scheduler->closing : 0;
}

bool scheduler_is_closing(const struct target *target)
{
	return target->closed && target->series && target->series->in_writer;
}

bool scheduler_settled(const struct scheduler *scheduler)
{
	return scheduler->closing == 0;
}

bool scheduler_idle(const struct scheduler *scheduler)
{
	for (const struct snapshot_series *series = scheduler->series; series; series = series->next_series)
		if (snapshot_request_is_asked(&series->numbered) || series->in_writer)
			return false;
	return scheduler->closing == 0;
}

/* ---- beginning and end */

void scheduler_reap(struct scheduler *scheduler, pid_t pid, int status)
{
	writer_reap(scheduler->writer, pid, status);
}

void scheduler_hurry_writing(struct scheduler *scheduler, bool hurry)
{
	writer_set_hurry(scheduler->writer, hurry);
}

struct scheduler *scheduler_new(const struct scheduler_setup *setup)
{
	struct scheduler *scheduler = calloc(1, sizeof(*scheduler));
	const bool older = setup->began_unix_ns != 0;

	if (!scheduler)
		return NULL;
	scheduler->setup = *setup;
	scheduler->began_unix_ns = older ? setup->began_unix_ns : clock_unix_ns();
	scheduler->began_ns = older ? setup->began_ns : clock_now_ns();
	scheduler->began_pid = older ? setup->began_pid : getpid();
	scheduler->refresh_ns = REFRESH_NS;
	scheduler->writer = writer_new(scheduler_on_written, scheduler);
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

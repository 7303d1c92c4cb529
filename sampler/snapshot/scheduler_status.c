/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler tells of itself and of its targets. */
#include "sampler/snapshot/scheduler.h"
#include "sampler/snapshot/scheduler_state.h"

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
	return target->closed && target->series && target->series->jobs;
}

bool scheduler_settled(const struct scheduler *scheduler)
{
	return scheduler->closing == 0;
}

bool scheduler_idle(const struct scheduler *scheduler)
{
	for (const struct snapshot_series *series = scheduler->series; series; series = series->next_series)
		if (series->wanted || series->jobs)
			return false;
	return scheduler->closing == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler tells of itself and of its targets. */
#include "sampler/snapshot/scheduler.h"
#include "sampler/snapshot/scheduler_state.h"

const struct scheduler_setup *scheduler_setup(const struct scheduler *a)
{
	return &a->setup;
}

bool scheduler_is_enough(const struct scheduler *a, const struct target *target, uint64_t samples)
{
	const bool last_program = target->command && target->end != TARGET_EXEC;

	return samples > 0 && (last_program || samples >= a->setup.settings->min_samples);
}

int64_t scheduler_start_unix_ns(const struct scheduler *a, const struct target *target)
{
	return a->began_unix_ns + (int64_t)(target->start_ns - a->began_ns);
}

void scheduler_each(const struct scheduler *a, const struct snapshot_source *source,
    void (*visit)(void *context, const struct target *target, int64_t start_unix_ns), void *context)
{
	for (const struct snapshot_series *series = a->series; series; series = series->next_series)
		if (series->source == source && !series->target->closed && series->target->readable)
			visit(context, series->target, scheduler_start_unix_ns(a, series->target));
}

bool scheduler_serves(const struct scheduler *a, pid_t pid)
{
	for (const struct snapshot_series *series = a->series; series; series = series->next_series)
		if (series->target->pid == pid)
			return true;
	return false;
}

void scheduler_progress(const struct scheduler *a, uint64_t *written, uint64_t *ended)
{
	*ended = a->ended;
	*written = a->ended > a->closing ? a->ended - a->closing : 0;
}

bool scheduler_is_closing(const struct target *target)
{
	return target->closed && target->series && target->series->jobs;
}

bool scheduler_settled(const struct scheduler *a)
{
	return a->closing == 0;
}

bool scheduler_idle(const struct scheduler *a)
{
	for (const struct snapshot_series *series = a->series; series; series = series->next_series)
		if (series->wanted || series->jobs)
			return false;
	return a->closing == 0;
}

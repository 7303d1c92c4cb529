/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that are asked for: taken by the next look. */
#include "sampler/snapshot/scheduler.h"
#include "sampler/snapshot/scheduler_state.h"

static bool want(
    struct scheduler *scheduler, struct snapshot_series *series, const char *cause, uint64_t asker)
{
	if (series->target->closed ||
	    !series->source->kind->has(series->source, series->target, SNAPSHOT_REQUESTED) ||
	    !snapshot_series_want(series, cause, NULL, asker))
		return false;
	series->wanted_at_once = true;
	scheduler->look_ns = 0;
	return true;
}

uint32_t scheduler_want_all(struct scheduler *scheduler, const char *cause, uint64_t asker)
{
	uint32_t count = 0;

	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series)
		count += want(scheduler, series, cause, asker);
	return count;
}

uint32_t scheduler_ask(struct scheduler *scheduler, pid_t pid, uint64_t asker)
{
	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series)
		if (series->target->pid == pid && series->target->readable &&
		    want(scheduler, series, "heaptap snapshot", asker))
			return 1;
	return 0;
}

uint32_t scheduler_ask_memory(struct scheduler *scheduler, pid_t pid, uint64_t asker)
{
	uint32_t count = 0;

	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series) {
		const struct target *target = series->target;

		if ((pid && (target->pid != pid || !target->readable)) || target->closed ||
		    !series->source->kind->in_memory || !in_memory_want(&series->in_memory, asker))
			continue;
		scheduler->look_ns = 0;
		count++;
		if (pid)
			break;
	}
	return count;
}

static uint32_t without(uint64_t *askers, uint32_t count, uint64_t gone)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (askers[i] != gone)
			askers[kept++] = askers[i];
	return kept;
}

void scheduler_forget(struct scheduler *scheduler, uint64_t asker)
{
	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series) {
		struct in_memory *in_memory = &series->in_memory;

		series->asker_count = without(series->askers, series->asker_count, asker);
		in_memory->asker_count = without(in_memory->askers, in_memory->asker_count, asker);
	}
}

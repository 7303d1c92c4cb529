/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's users ask for snapshots; the next look takes them. */
#include "sampler/write/scheduler.h"
#include "sampler/write/scheduler_state.h"

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

/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/moments.h"

#include <errno.h>
#include <stdlib.h>

/* A process that is told to end takes some time to free all that it has, rarely more than this. If a state
 * comes each second, it is left out in a quarter of all cases at most. */
#define END_NS   INT64_C(1000000000)
#define END_PART 4

struct seen {
	int64_t time_ns;
	size_t process;
};

static int compare_times(const void *left, const void *right)
{
	const struct seen *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

static int64_t last_of(const struct moments_process *process)
{
	return process->times_ns[process->count - 1];
}

size_t moments_running(const int64_t *times_ns, size_t count, int64_t end_ns)
{
	if (count < 2)
		return count;
	const double last_ns = (double)times_ns[count - 1];
	const double interval_ns = last_ns - (double)times_ns[count - 2];
	const double end_part_ns = interval_ns / END_PART < END_NS ? interval_ns / END_PART : END_NS;

	return count - ((double)end_ns - last_ns < end_part_ns);
}

/* A process with an unknown end is there until its next state would have been due. */
static bool is_over(const struct moments_process *process, int64_t moment_ns)
{
	if (process->end_ns)
		return process->end_ns <= moment_ns;
	if (process->runs || process->count < 2)
		return false;
	/* In floating point: the times are from files, and their difference may have no room in 64 bits. */
	const double last_ns = (double)last_of(process);

	return (double)moment_ns - last_ns > 1.5 * (last_ns - (double)process->times_ns[process->count - 2]);
}

struct moments_state moments_state_at(const struct moments_process *process, int64_t moment_ns)
{
	struct moments_state state = {.begun = process->count && process->times_ns[0] <= moment_ns};

	while (state.begun && state.index + 1 < process->count &&
	    process->times_ns[state.index + 1] <= moment_ns)
		state.index++;
	state.over = state.begun && is_over(process, moment_ns);
	return state;
}

/* Had a process begun by then, of which nothing is known until later? */
static bool is_known(const struct moments_process *processes, size_t count, int64_t moment_ns)
{
	for (size_t i = 0; i < count; i++)
		if (processes[i].count && processes[i].start_ns <= moment_ns &&
		    processes[i].times_ns[0] > moment_ns)
			return false;
	return true;
}

/* Closes a moment when a process comes round that has a state in it already. Returns the number of moments;
 * they replace the first entries of `seen`. */
static size_t close_moments(struct seen *seen, size_t seen_count, const struct moments_process *processes,
    size_t process_count, size_t *round)
{
	size_t count = 0, current = 1;

	for (size_t i = 0; i < seen_count; i++) {
		const bool closes = i + 1 == seen_count || round[seen[i + 1].process] == current ||
		    seen[i + 1].process == seen[i].process;

		round[seen[i].process] = current;
		if (!closes)
			continue;
		current++;
		if (is_known(processes, process_count, seen[i].time_ns))
			seen[count++] = seen[i];
	}
	return count;
}

int moments_choose(
    int64_t *moments_ns, size_t most, const struct moments_process *processes, size_t process_count)
{
	size_t seen_count = 0, count = 0, chosen;
	size_t *round = calloc(process_count + 1, sizeof(*round));
	struct seen *seen;

	for (size_t p = 0; p < process_count; p++)
		seen_count += processes[p].count;
	seen = calloc(seen_count + 1, sizeof(*seen));
	if (!seen || !round) {
		free(seen);
		free(round);
		return -ENOMEM;
	}
	for (size_t p = 0; p < process_count; p++)
		for (size_t i = 0; i < processes[p].count; i++)
			seen[count++] = (struct seen){processes[p].times_ns[i], p};
	qsort(seen, seen_count, sizeof(*seen), compare_times);
	count = close_moments(seen, seen_count, processes, process_count, round);
	chosen = count < most ? count : most;
	for (size_t i = 0; i < chosen; i++)
		moments_ns[i] = seen[chosen > 1 ? i * (count - 1) / (chosen - 1) : i].time_ns;
	free(seen);
	free(round);
	return (int)chosen;
}

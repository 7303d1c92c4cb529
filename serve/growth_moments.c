/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/growth_moments.h"

static int64_t last_of(const struct growth_moments_process *process)
{
	return process->times_ns[process->count - 1];
}

/* Now. Where nothing runs, the last moment that is not the end of one: when a service is stopped, its
 * processes end one after the other, and at the last of these ends there is one alone. */
static int64_t last_moment(const struct growth_moments_process *processes, size_t count)
{
	int64_t last_ns = 0, alive_ns = 0;

	for (size_t i = 0; i < count; i++) {
		const struct growth_moments_process *at = &processes[i];

		if (last_of(at) > last_ns)
			last_ns = last_of(at);
		for (size_t state = 0; state < at->count - at->over; state++)
			if (at->times_ns[state] > alive_ns)
				alive_ns = at->times_ns[state];
	}
	return alive_ns ? alive_ns : last_ns;
}

/* One that says nothing of its end is there until its next state would have been due. */
static bool is_there(const struct growth_moments_process *process, int64_t time_ns)
{
	const int64_t last_ns = last_of(process);
	const int64_t step_ns =
	    process->count > 1 && !process->over ? last_ns - process->times_ns[process->count - 2] : 0;

	return process->start_ns <= time_ns && (process->runs || last_ns + step_ns >= time_ns);
}

/* Had any of them begun of which nothing is known until later? */
static bool is_known(const struct growth_moments_process *processes, size_t count, int64_t time_ns)
{
	for (size_t i = 0; i < count; i++)
		if (!processes[i].left && processes[i].start_ns <= time_ns &&
		    processes[i].times_ns[0] > time_ns)
			return false;
	return true;
}

/* The known moment nearest to a time, after one and before another; 0: none. */
static int64_t nearest_known(const struct growth_moments_process *processes, size_t count, int64_t after_ns,
    int64_t before_ns, int64_t wanted_ns)
{
	int64_t found_ns = 0, least_ns = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		for (size_t state = 0; state < processes[i].count && !processes[i].left; state++) {
			const int64_t at_ns = processes[i].times_ns[state];
			const int64_t far_ns = at_ns < wanted_ns ? wanted_ns - at_ns : at_ns - wanted_ns;

			if (at_ns <= after_ns || at_ns >= before_ns || far_ns >= least_ns ||
			    !is_known(processes, count, at_ns))
				continue;
			found_ns = at_ns;
			least_ns = far_ns;
		}
	}
	return found_ns;
}

void growth_moments_choose(
    struct growth_moments *moments, struct growth_moments_process *processes, size_t count)
{
	const int64_t last_ns = last_moment(processes, count);
	int64_t first_ns, middle_ns = 0;

	for (size_t i = 0; i < count; i++)
		processes[i].left = !is_there(&processes[i], last_ns);
	first_ns = nearest_known(processes, count, 0, last_ns, 0);
	if (first_ns)
		middle_ns =
		    nearest_known(processes, count, first_ns, last_ns, first_ns + (last_ns - first_ns) / 2);
	moments->count = 0;
	if (first_ns)
		moments->times_ns[moments->count++] = first_ns;
	if (middle_ns)
		moments->times_ns[moments->count++] = middle_ns;
	moments->times_ns[moments->count++] = last_ns;
}

int growth_moments_state(const struct growth_moments_process *process, int64_t time_ns)
{
	size_t state = 0;

	if (process->start_ns > time_ns)
		return GROWTH_MOMENTS_NO_STATE;
	while (state + 1 < process->count &&
	    process->times_ns[state + 1] - time_ns < time_ns - process->times_ns[state])
		state++;
	return (int)state;
}

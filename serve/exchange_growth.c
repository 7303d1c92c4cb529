/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_growth.h"

#include "sampler/linux/clock.h"
#include "serve/api_work.h"
#include "serve/growth_moments.h"

#include <stdlib.h>

/* ---- one process */

static void of_process(struct exchange *exchange)
{
	const struct catalog_process *process = api_work_process(exchange);
	struct api_work *work;
	size_t count;

	if (!process || !api_work_prepare(exchange, API_WORK_SERIES_MAX, process->service, &work))
		return;
	exchange->last.count = 0;
	api_work_series(exchange, process, work, API_WORK_SERIES_MAX, true);
	count = exchange->last.count;
	for (size_t i = 0; i < count; i++)
		work->columns[i] = i;
	work->question.view = API_GROWTH;
	work->question.column_count = count;
	if (count) {
		api_work_begin(exchange, work);
		return;
	}
	api_work_abandon(work);
	api_work_refuse(exchange, 404, "there is no profile of this process");
}

/* ---- the processes of a service */

struct member {
	const struct catalog_process *process;
	struct profile_choice_state *states;
	int64_t *times_ns; /* of these, and of what it has now */
};

struct members {
	struct member *list;
	struct growth_moments_process *processes; /* beside it; those without any state are in neither */
	size_t count;
};

static void free_members(struct members *members)
{
	for (size_t i = 0; i < members->count; i++) {
		free(members->list[i].states);
		free(members->list[i].times_ns);
	}
	free(members->list);
	free(members->processes);
}

static bool add_member(struct members *members, const struct catalog_process *process,
    const struct snapshots *snapshots, int64_t now_ns)
{
	struct growth_moments_process *to = &members->processes[members->count];
	struct member *member = &members->list[members->count];
	size_t count;

	member->process = process;
	member->states = profile_choice_states(process, snapshots, &count);
	member->times_ns = calloc(count + 1, sizeof(*member->times_ns));
	members->count++;
	if (!member->states || !member->times_ns)
		return false;
	for (size_t i = 0; i < count; i++)
		member->times_ns[i] = member->states[i].time_ns;
	*to = (struct growth_moments_process){.start_ns = process->start_ns,
	    .times_ns = member->times_ns,
	    .count = count,
	    .runs = process->listed != NULL,
	    .over = count && !process->listed && member->states[count - 1].file &&
	        catalog_file_is_last(member->states[count - 1].file)};
	if (process->listed)
		member->times_ns[to->count++] = now_ns;
	if (to->count)
		return true;
	free(member->states);
	free(member->times_ns);
	members->count--;
	return true;
}

/* Of each moment the state of each process: they are added up. */
static void take_states(struct exchange *exchange, struct api_work *work, const struct members *members)
{
	struct gather *gather = &exchange->last;
	struct growth_moments moments;

	growth_moments_choose(&moments, members->processes, members->count);
	for (size_t at = 0; at < moments.count; at++) {
		for (size_t i = 0; i < members->count; i++) {
			const struct member *member = &members->list[i];
			struct gather_item *item = &gather->items[gather->count];
			const int state = growth_moments_state(&members->processes[i], moments.times_ns[at]);

			if (members->processes[i].left || state == GROWTH_MOMENTS_NO_STATE)
				continue;
			if (member->process->listed && (size_t)state + 1 == members->processes[i].count)
				api_work_now(member->process, item, work->ids[gather->count]);
			else
				profile_choice_take(
				    member->process, &member->states[state], item, work->ids[gather->count]);
			work->columns[gather->count] = at;
			work->profile_owners[gather->count++] = i;
		}
	}
	work->question.view = API_GROWTH;
	work->question.column_count = moments.count;
}

static void of_service(
    struct exchange *exchange, const struct catalog_process *const *chosen, size_t chosen_count)
{
	const int64_t now_ns = clock_unix_ns();
	struct members members = {
	    calloc(chosen_count, sizeof(*members.list)), calloc(chosen_count, sizeof(*members.processes)), 0};
	bool made = members.list && members.processes;
	struct api_work *work;

	for (size_t i = 0; i < chosen_count && made; i++)
		made = add_member(&members, chosen[i], exchange->server->snapshots, now_ns);
	if (!made) {
		api_work_refuse(exchange, 500, "out of memory");
	} else if (!members.count) {
		api_work_refuse(exchange, 404, "there is no profile of these processes");
	} else if (api_work_prepare(
	               exchange, members.count * GROWTH_MOMENTS, exchange->route.service, &work)) {
		exchange->last.count = 0;
		take_states(exchange, work, &members);
		free_members(&members);
		api_work_begin(exchange, work);
		return;
	}
	free_members(&members);
}

void exchange_growth(struct exchange *exchange)
{
	const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX];
	size_t count;

	if (exchange->route.scope != ROUTE_SERVICE || api_work_parameter(exchange, "id")) {
		of_process(exchange);
		return;
	}
	count = api_work_processes(exchange, chosen);
	if (count > 1)
		of_service(exchange, chosen, count);
	else if (count)
		of_process(exchange);
}

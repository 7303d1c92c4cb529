/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_growth.h"

#include "pprof/analysis/moments.h"
#include "pprof/analysis/trend.h"
#include "pprof/text/clock.h"
#include "serve/api_task.h"
#include "serve/endpoint_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most profiles of one answer. If there are many processes, few moments are chosen. */
enum { PROFILES_MOST = 192 };

struct member {
	const struct catalog_process *process;
	struct process_profiles_state *states;
	int64_t *times_ns; /* of the states, without the end, and of the present one */
	size_t end;        /* the state that counts if the process has ended */
};

struct members {
	struct member *list;
	struct moments_process *processes; /* as many; a process without any state is in neither list */
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
	struct moments_process *to = &members->processes[members->count];
	struct member *member = &members->list[members->count];
	size_t count;

	member->process = process;
	member->states = process_profiles_states(process, snapshots, &count);
	member->times_ns = calloc(count + 1, sizeof(*member->times_ns));
	members->count++;
	if (!member->states || !member->times_ns)
		return false;
	const bool over = count && !process->listed && member->states[count - 1].file &&
	    catalog_file_is_last(member->states[count - 1].file);

	member->end = count ? count - 1 : 0;
	for (size_t i = 0; i < count; i++)
		member->times_ns[i] = member->states[i].time_ns;
	*to = (struct moments_process){.start_ns = process->start_ns,
	    .times_ns = member->times_ns,
	    .count = over ? moments_running(member->times_ns, count - 1, member->times_ns[count - 1]) : count,
	    .end_ns = over ? member->times_ns[count - 1] : 0,
	    .runs = process->listed != NULL};
	if (process->listed)
		member->times_ns[to->count++] = now_ns;
	if (!to->count && over) { /* only the end of the process is known */
		to->count = 1;
		to->end_ns = 0;
	}
	if (to->count)
		return true;
	free(member->states);
	free(member->times_ns);
	members->count--;
	return true;
}

static void add_state(
    struct api_task *task, const struct members *members, size_t number, size_t column, int64_t moment_ns)
{
	const struct member *member = &members->list[number];
	const struct moments_process *process = &members->processes[number];
	const struct moments_state state = moments_state_at(process, moment_ns);
	struct task_item *item = api_task_next(task);

	if (!state.begun)
		return;
	if (process->runs && state.index + 1 == process->count)
		api_task_set_now(item, member->process);
	else
		process_profiles_take(
		    member->process, &member->states[state.over ? member->end : state.index], item);
	item->column = column;
	item->ended = state.over;
	item->owner = number;
	task->base.count++;
}

/* The states of all processes at each moment: the states of a moment are added up. */
static void answer_at(struct request *request, const struct api_view *view, const struct members *members,
    const int64_t *moments_ns, size_t moment_count)
{
	struct api_task *task =
	    api_task_new(request, members->count * moment_count, request->route.service, api_answer_view);

	if (!task)
		return;
	for (size_t at = 0; at < moment_count; at++)
		for (size_t i = 0; i < members->count; i++)
			add_state(task, members, i, at, moments_ns[at]);
	task->question.view = view;
	task->question.column_count = moment_count;
	api_task_begin(task, "none of these processes is known at that moment");
}

static size_t moments_most(size_t process_count)
{
	const size_t most = PROFILES_MOST / process_count;

	return most > MOMENTS_MOST ? MOMENTS_MOST : most < TREND_POINTS_LEAST ? TREND_POINTS_LEAST : most;
}

static void answer(struct request *request, const struct members *members)
{
	int64_t moments_ns[MOMENTS_MOST];
	const int count =
	    moments_choose(moments_ns, moments_most(members->count), members->processes, members->count);

	if (count < 0)
		request_refuse(request, 500, "out of memory");
	else if (!count)
		request_refuse(request, 404, "there is no moment at which all of these processes are known");
	else
		answer_at(request, api_view_find("growth"), members, moments_ns, (size_t)count);
}

/* False: the request was refused. The caller frees the members in all cases. */
static bool find_members(struct request *request, struct members *members,
    const struct catalog_process *const *chosen, size_t chosen_count)
{
	const int64_t now_ns = clock_unix_ns();
	bool made;

	*members = (struct members){calloc(chosen_count + 1, sizeof(*members->list)),
	    calloc(chosen_count + 1, sizeof(*members->processes)), 0};
	made = members->list && members->processes;
	for (size_t i = 0; i < chosen_count && made; i++)
		made = add_member(members, chosen[i], request->server->snapshots, now_ns);
	if (!made)
		request_refuse(request, 500, "out of memory");
	else if (!members->count)
		request_refuse(request, 404, "there is no profile of these processes");
	return made && members->count;
}

static void grow(struct request *request, const struct catalog_process *const *chosen, size_t chosen_count)
{
	struct members members;

	if (find_members(request, &members, chosen, chosen_count))
		answer(request, &members);
	free_members(&members);
}

void answer_growth(struct request *request)
{
	const struct catalog_process *chosen[REQUEST_PROCESSES_MAX];
	size_t count = 1;

	if (request->route.scope == ROUTE_SERVICE && !request_parameter(request, "id"))
		count = api_task_processes(request, chosen);
	else if (!(chosen[0] = api_task_process(request)))
		count = 0;
	if (count)
		grow(request, chosen, count);
}

bool api_growth_moment(const char *id, int64_t *moment_ns)
{
	int length = 0;

	if (strcmp(id, "now") == 0) {
		*moment_ns = clock_unix_ns();
		return true;
	}
	return sscanf(id, "at-%19" SCNd64 "%n", moment_ns, &length) == 1 && !id[length];
}

void api_growth_answer_at(
    struct request *request, const struct api_view *view, const int64_t *moments_ns, size_t moment_count)
{
	const struct catalog_process *chosen[REQUEST_PROCESSES_MAX];
	size_t all, count = 0;
	const struct catalog_process *processes = catalog_processes(request->server->catalog, &all);
	struct members members;

	for (size_t i = 0; i < all && count < REQUEST_PROCESSES_MAX; i++)
		if (catalog_is_meant(&processes[i], &request->route))
			chosen[count++] = &processes[i];
	if (find_members(request, &members, chosen, count)) {
		/* A process whose end nobody has seen counts until it was last seen, as in the time line. */
		for (size_t i = 0; i < members.count; i++)
			if (!members.processes[i].runs && !members.processes[i].end_ns)
				members.processes[i].end_ns =
				    members.processes[i].times_ns[members.processes[i].count - 1] + 1;
		answer_at(request, view, &members, moments_ns, moment_count);
	}
	free_members(&members);
}

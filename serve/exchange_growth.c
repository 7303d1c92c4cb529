/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_growth.h"

#include "pprof/analysis/moments.h"
#include "pprof/analysis/trend.h"
#include "sampler/linux/clock.h"
#include "serve/api_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Profiles of one answer: as many moments as that leaves room for, of many processes few. */
enum { PROFILES_MOST = 192 };

struct member {
	const struct catalog_process *process;
	struct profile_choice_state *states;
	int64_t *times_ns; /* of these but for its end, and of what it has now */
	size_t end;        /* the state that counts when it has ended */
};

struct members {
	struct member *list;
	struct moments_process *processes; /* beside it; those without any state are in neither */
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
	member->states = profile_choice_states(process, snapshots, &count);
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
	    .count = count - over,
	    .end_ns = over ? member->states[count - 1].time_ns : 0,
	    .runs = process->listed != NULL};
	if (process->listed)
		member->times_ns[to->count++] = now_ns;
	if (!to->count && over) { /* its end is all that is known of it */
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

static void take_state(struct exchange *exchange, struct api_work *work, const struct members *members,
    size_t number, size_t column, int64_t moment_ns)
{
	const struct member *member = &members->list[number];
	const struct moments_process *process = &members->processes[number];
	const struct moments_state state = moments_state_at(process, moment_ns);
	struct fetch *fetch = &exchange->last;
	struct fetch_item *item = &fetch->items[fetch->count];

	if (!state.begun)
		return;
	if (process->runs && state.index + 1 == process->count)
		api_work_now(member->process, item, work->ids[fetch->count]);
	else
		profile_choice_take(member->process, &member->states[state.over ? member->end : state.index],
		    item, work->ids[fetch->count]);
	work->columns[fetch->count] = column;
	work->profile_ended[fetch->count] = state.over;
	work->profile_owners[fetch->count++] = number;
}

/* Of each moment the state of each process: they are added up. */
static void take_states(struct exchange *exchange, struct api_work *work, enum api_view view,
    const struct members *members, const int64_t *moments_ns, size_t moment_count)
{
	exchange->last.count = 0;
	for (size_t at = 0; at < moment_count; at++)
		for (size_t i = 0; i < members->count; i++)
			take_state(exchange, work, members, i, at, moments_ns[at]);
	work->question.view = view;
	work->question.column_count = moment_count;
}

static void answer_at(struct exchange *exchange, enum api_view view, const struct members *members,
    const int64_t *moments_ns, size_t moment_count)
{
	struct api_work *work;

	if (!api_work_prepare(exchange, members->count * moment_count, exchange->route.service, &work))
		return;
	take_states(exchange, work, view, members, moments_ns, moment_count);
	if (exchange->last.count) {
		api_work_begin(exchange, work);
		return;
	}
	api_work_abandon(work);
	api_work_refuse(exchange, 404, "none of these processes is known at that moment");
}

static size_t moments_most(size_t process_count)
{
	const size_t most = PROFILES_MOST / process_count;

	return most > MOMENTS_MOST ? MOMENTS_MOST : most < TREND_POINTS_LEAST ? TREND_POINTS_LEAST : most;
}

static void answer(struct exchange *exchange, const struct members *members)
{
	int64_t moments_ns[MOMENTS_MOST];
	const int count =
	    moments_choose(moments_ns, moments_most(members->count), members->processes, members->count);

	if (count < 0)
		api_work_refuse(exchange, 500, "out of memory");
	else if (!count)
		api_work_refuse(
		    exchange, 404, "there is no moment at which all of these processes are known");
	else
		answer_at(exchange, API_GROWTH, members, moments_ns, (size_t)count);
}

/* False: a reply was made. The caller frees them in all cases. */
static bool find_members(struct exchange *exchange, struct members *members,
    const struct catalog_process *const *chosen, size_t chosen_count)
{
	const int64_t now_ns = clock_unix_ns();
	bool made;

	*members = (struct members){calloc(chosen_count + 1, sizeof(*members->list)),
	    calloc(chosen_count + 1, sizeof(*members->processes)), 0};
	made = members->list && members->processes;
	for (size_t i = 0; i < chosen_count && made; i++)
		made = add_member(members, chosen[i], exchange->server->snapshots, now_ns);
	if (!made)
		api_work_refuse(exchange, 500, "out of memory");
	else if (!members->count)
		api_work_refuse(exchange, 404, "there is no profile of these processes");
	return made && members->count;
}

static void grow(struct exchange *exchange, const struct catalog_process *const *chosen, size_t chosen_count)
{
	struct members members;

	if (find_members(exchange, &members, chosen, chosen_count))
		answer(exchange, &members);
	free_members(&members);
}

void exchange_growth(struct exchange *exchange)
{
	const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX];
	size_t count = 1;

	if (exchange->route.scope == ROUTE_SERVICE && !api_work_parameter(exchange, "id"))
		count = api_work_processes(exchange, chosen);
	else if (!(chosen[0] = api_work_process(exchange)))
		count = 0;
	if (count)
		grow(exchange, chosen, count);
}

bool exchange_growth_moment(const char *id, int64_t *moment_ns)
{
	int length = 0;

	if (strcmp(id, "now") == 0) {
		*moment_ns = clock_unix_ns();
		return true;
	}
	return sscanf(id, "at-%19" SCNd64 "%n", moment_ns, &length) == 1 && !id[length];
}

void exchange_growth_view(
    struct exchange *exchange, enum api_view view, const int64_t *moments_ns, size_t moment_count)
{
	const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX];
	size_t all, count = 0;
	const struct catalog_process *processes = catalog_processes(exchange->server->catalog, &all);
	struct members members;

	for (size_t i = 0; i < all && count < EXCHANGE_PROCESSES_MAX; i++)
		if (catalog_is_meant(&processes[i], &exchange->route))
			chosen[count++] = &processes[i];
	if (find_members(exchange, &members, chosen, count)) {
		/* One whose end nobody has seen counts up to what was last seen, as in the time line. */
		for (size_t i = 0; i < members.count; i++)
			if (!members.processes[i].runs && !members.processes[i].end_ns)
				members.processes[i].end_ns =
				    members.processes[i].times_ns[members.processes[i].count - 1] + 1;
		answer_at(exchange, view, &members, moments_ns, moment_count);
	}
	free_members(&members);
}

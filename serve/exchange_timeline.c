/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_timeline.h"

#include "serve/api_work.h"
#include "serve/exchange_lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	POINTS_MAX = 1 << 15, /* of all processes of a sum */
	PROFILES_MAX = 96,    /* that are read where filters are given, but at least */
	PROFILES_LEAST = 2,   /* of each process */
};

/* ---- one process */

static void describe(struct api_work *work, const struct catalog_process *process)
{
	snprintf(work->program, sizeof(work->program), "%s", process->program);
	snprintf(work->name, sizeof(work->name), "%s", process->name);
	snprintf(work->service, sizeof(work->service), "%s", process->service);
	snprintf(work->host, sizeof(work->host), "%s", process->host);
	snprintf(work->session, sizeof(work->session), "%s", process->session);
	work->process = (struct api_process){.id = work->id,
	    .pid = process->key.pid,
	    .program = work->program,
	    .name = work->name,
	    .service = work->service,
	    .host = work->host,
	    .session = work->session,
	    .start_ns = process->start_ns,
	    .running = process->listed != NULL,
	    .rss_bytes = process->listed ? (int64_t)process->listed->rss_bytes : -1,
	    .profile_count = process->file_count};
}

static void of_process(struct exchange *exchange)
{
	const struct catalog_process *process = api_work_process(exchange);
	struct api_work *work;

	if (!process || !api_work_prepare(exchange, API_WORK_SERIES_MAX, process->service, &work))
		return;
	exchange->last.count = 0;
	api_work_series(exchange, process, work, API_WORK_SERIES_MAX - 1, false);
	work->question.kind = API_ANSWER_TIMELINE;
	work->question.points = work->points = exchange_lists_points(process, &work->question.point_count, 0);
	exchange_lists_id(process, work->id);
	describe(work, process);
	api_work_begin(exchange, work);
}

/* ---- the processes of a service */

struct members {
	const struct catalog_process *processes[EXCHANGE_PROCESSES_MAX];
	size_t count;
	int64_t from_ns; /* the end of those for which there is no room */
};

static int64_t end_of(const struct catalog_process *process)
{
	return process->listed    ? INT64_MAX
	    : process->file_count ? process->files[process->file_count - 1]->time_ns
	                          : 0;
}

/* Of those that have ended the last, where there are too many. Of two sorted by their ends, that is: the one
 * that goes is the first. */
static void add_member(struct members *members, const struct catalog_process *process)
{
	size_t at = members->count;

	if (members->count == EXCHANGE_PROCESSES_MAX) {
		const struct catalog_process *first = members->processes[0];
		const struct catalog_process *out = end_of(process) <= end_of(first) ? process : first;

		members->from_ns = end_of(out) > members->from_ns ? end_of(out) : members->from_ns;
		if (out == process)
			return;
		memmove(members->processes, members->processes + 1,
		    (members->count - 1) * sizeof(*members->processes));
		at--;
	} else {
		members->count++;
	}
	for (; at && end_of(members->processes[at - 1]) > end_of(process); at--)
		members->processes[at] = members->processes[at - 1];
	members->processes[at] = process;
}

static void find_members(const struct exchange *exchange, struct members *members)
{
	size_t count;
	const struct catalog_process *processes = catalog_processes(exchange->server->catalog, &count);

	members->count = 0;
	members->from_ns = 0;
	for (size_t i = 0; i < count; i++)
		if (catalog_is_meant(&processes[i], &exchange->route))
			add_member(members, &processes[i]);
}

/* What lists and files have said of a process; the last is always among them. */
static int add_points(
    struct api_work *work, const struct catalog_process *process, size_t member, size_t most)
{
	size_t *count = &work->question.point_count, listed, all, step;
	struct api_point *points = exchange_lists_points(process, &listed, most);

	if (!points)
		return -1;
	for (size_t i = 0; i < listed && *count < POINTS_MAX; i++) {
		work->owners[*count] = member;
		work->points[(*count)++] = points[i];
	}
	free(points);
	all = process->file_count;
	step = all / most + 1;
	for (size_t i = 0; i < all && *count < POINTS_MAX; i++) {
		const struct catalog_file *file = process->files[i];

		if (!catalog_file_is_state(file) || !file->point.time_ns || (all - 1 - i) % step)
			continue;
		work->owners[*count] = member;
		work->points[*count] = file->point;
		profile_choice_file_id(work->points[(*count)++].id, file);
	}
	return 0;
}

static void describe_sum(struct api_work *work, const struct members *members)
{
	struct api_process *to = &work->process;

	describe(work, members->processes[members->count - 1]);
	work->id[0] = work->session[0] = '\0';
	to->pid = 0;
	to->rss_bytes = -1;
	to->profile_count = 0;
	to->is_sum = true;
	memcpy(work->name, work->program, sizeof(work->name));
	for (size_t i = 0; i < members->count; i++) {
		const struct catalog_process *process = members->processes[i];

		work->members[i] = (struct timeline_sum_process){process->start_ns, process->listed != NULL};
		to->running = to->running || process->listed;
		to->profile_count += process->file_count;
		to->start_ns = process->start_ns < to->start_ns ? process->start_ns : to->start_ns;
		if (strcmp(process->program, work->program) != 0)
			work->program[0] = work->name[0] = '\0';
		if (process->listed)
			to->rss_bytes =
			    (to->rss_bytes < 0 ? 0 : to->rss_bytes) + (int64_t)process->listed->rss_bytes;
	}
}

/* Without filters what is known already will do; else so many profiles of each are read. */
static int fill_sum(
    struct exchange *exchange, struct api_work *work, const struct members *members, bool plain)
{
	struct fetch *fetch = &exchange->last;
	int err = 0;

	work->members = calloc(members->count, sizeof(*work->members));
	work->points = calloc(POINTS_MAX, sizeof(*work->points));
	work->owners = calloc(POINTS_MAX, sizeof(*work->owners));
	fetch->count = 0;
	if (!work->members || !work->points || !work->owners)
		return -1;
	for (size_t i = 0; i < members->count && !err; i++) {
		size_t before = fetch->count, most = PROFILES_MAX / members->count;

		if (plain)
			err = add_points(work, members->processes[i], i, POINTS_MAX / 2 / members->count);
		else
			api_work_series(exchange, members->processes[i], work,
			    most < PROFILES_LEAST ? PROFILES_LEAST : most, false);
		for (size_t item = before; item < fetch->count; item++) {
			work->columns[item] = i;
			work->profile_owners[item] = item; /* one that is gone is a point less */
		}
	}
	describe_sum(work, members);
	work->question.kind = API_ANSWER_TIMELINE;
	work->question.column_count = members->count;
	work->question.points = work->points;
	work->question.owners = work->owners;
	work->question.members = work->members;
	work->question.from_ns = members->from_ns;
	return err;
}

static const char *get(const void *context, const char *name)
{
	return parameters_get(context, name);
}

static bool is_plain(const struct exchange *exchange)
{
	struct api_query query;
	char error[512];
	/* What is wrong with it the job will say. */
	bool plain = !api_query_parse(&query, get, &exchange->route.parameters, error, sizeof(error)) &&
	    api_query_is_plain(&query);

	api_query_fini(&query);
	return plain;
}

static void of_service(struct exchange *exchange)
{
	struct members members;
	struct api_work *work;
	const bool plain = is_plain(exchange);

	find_members(exchange, &members);
	if (!api_work_prepare(
	        exchange, members.count * PROFILES_LEAST + PROFILES_MAX, exchange->route.service, &work))
		return;
	if (!fill_sum(exchange, work, &members, plain)) {
		api_work_begin(exchange, work);
		return;
	}
	api_work_abandon(work);
	api_work_refuse(exchange, 500, "out of memory");
}

void exchange_timeline(struct exchange *exchange)
{
	const struct catalog_process *chosen[2];

	/* One that runs is the service, whatever has ended before it. */
	if (exchange->route.scope == ROUTE_SERVICE && !api_work_parameter(exchange, "id") &&
	    catalog_choose(exchange->server->catalog, &exchange->route, chosen, 2) > 1)
		of_service(exchange);
	else
		of_process(exchange);
}

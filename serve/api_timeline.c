/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/timeline: of one process, or of a service the sum of its processes. */
#include "serve/api_task.h"
#include "serve/endpoint_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	POINTS_MAX = 1 << 15, /* of all processes of a service */
	PROFILES_MAX = 96,    /* that are read if filters are given, unless there are too many processes */
	PROFILES_LEAST = 2,   /* that are read of each process, at least */
	SERIES_MAX = 48,      /* profiles that are read of a single process */
};

/* ---- one process */

static void describe(struct api_task *task, const struct catalog_process *process)
{
	snprintf(task->program, sizeof(task->program), "%s", process->program);
	snprintf(task->name, sizeof(task->name), "%s", process->name);
	snprintf(task->service, sizeof(task->service), "%s", process->service);
	snprintf(task->host, sizeof(task->host), "%s", process->host);
	snprintf(task->session, sizeof(task->session), "%s", process->session);
	task->process = (struct api_process){.id = task->id,
	    .pid = process->key.pid,
	    .program = task->program,
	    .name = task->name,
	    .service = task->service,
	    .host = task->host,
	    .session = task->session,
	    .start_ns = process->start_ns,
	    .running = process->listed != NULL,
	    .rss_bytes = process->listed ? (int64_t)process->listed->rss_bytes : -1,
	    .profile_count = process->file_count};
}

static void of_process(struct request *request)
{
	const struct catalog_process *process = api_task_process(request);
	struct api_task *task =
	    process ? api_task_new(request, SERIES_MAX, process->service, api_answer_timeline) : NULL;

	if (!task)
		return;
	api_task_add_series(task, process, SERIES_MAX - 1);
	task->question.points = task->points = api_lists_points(process, &task->question.point_count, 0);
	api_lists_id(process, task->id);
	describe(task, process);
	api_task_begin(task, NULL);
}

/* ---- the processes of a service */

struct members {
	const struct catalog_process *processes[REQUEST_PROCESSES_MAX];
	size_t count;
	int64_t from_ns; /* when the last process ended for which there is no room */
};

static int64_t end_of(const struct catalog_process *process)
{
	return process->listed    ? INT64_MAX
	    : process->file_count ? process->files[process->file_count - 1]->time_ns
	                          : 0;
}

/* Adds a process. The list is sorted by the processes' ends. If it is full, the process that ended first is
 * left out. */
static void add_member(struct members *members, const struct catalog_process *process)
{
	size_t at = members->count;

	if (members->count == REQUEST_PROCESSES_MAX) {
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

static void find_members(const struct request *request, struct members *members)
{
	size_t count;
	const struct catalog_process *processes = catalog_processes(request->server->catalog, &count);

	members->count = 0;
	members->from_ns = 0;
	for (size_t i = 0; i < count; i++)
		if (catalog_is_meant(&processes[i], &request->route))
			add_member(members, &processes[i]);
}

/* Adds the points that lists and files have of a process, and always the last one. */
static int add_points(
    struct api_task *task, const struct catalog_process *process, size_t member, size_t most)
{
	size_t *count = &task->question.point_count, listed, all, step;
	struct api_point *points = api_lists_points(process, &listed, most);

	if (!points)
		return -1;
	for (size_t i = 0; i < listed && *count < POINTS_MAX; i++) {
		task->owners[*count] = member;
		task->points[(*count)++] = points[i];
	}
	free(points);
	all = process->file_count;
	step = all / most + 1;
	for (size_t i = 0; i < all && *count < POINTS_MAX; i++) {
		const struct catalog_file *file = process->files[i];

		if (!catalog_file_is_state(file) || !file->point.time_ns || (all - 1 - i) % step)
			continue;
		task->owners[*count] = member;
		task->points[*count] = file->point;
		process_profiles_file_id(task->points[(*count)++].id, file);
	}
	return 0;
}

static void describe_sum(struct api_task *task, const struct members *members)
{
	struct api_process *to = &task->process;

	describe(task, members->processes[members->count - 1]);
	task->id[0] = task->session[0] = '\0';
	to->pid = 0;
	to->rss_bytes = -1;
	to->profile_count = 0;
	to->is_sum = true;
	memcpy(task->name, task->program, sizeof(task->name));
	for (size_t i = 0; i < members->count; i++) {
		const struct catalog_process *process = members->processes[i];

		task->members[i] = (struct timeline_sum_process){process->start_ns, process->listed != NULL};
		to->running = to->running || process->listed;
		to->profile_count += process->file_count;
		to->start_ns = process->start_ns < to->start_ns ? process->start_ns : to->start_ns;
		if (strcmp(process->program, task->program) != 0)
			task->program[0] = task->name[0] = '\0';
		if (process->listed)
			to->rss_bytes =
			    (to->rss_bytes < 0 ? 0 : to->rss_bytes) + (int64_t)process->listed->rss_bytes;
	}
}

/* Without filters the points that are known already will do. Else some profiles of each process are read. */
static int fill_sum(struct api_task *task, const struct members *members, bool plain)
{
	int err = 0;

	task->members = calloc(members->count, sizeof(*task->members));
	task->points = calloc(POINTS_MAX, sizeof(*task->points));
	task->owners = calloc(POINTS_MAX, sizeof(*task->owners));
	if (!task->members || !task->points || !task->owners)
		return -1;
	for (size_t i = 0; i < members->count && !err; i++) {
		size_t before = task->base.count, most = PROFILES_MAX / members->count;

		if (plain)
			err = add_points(task, members->processes[i], i, POINTS_MAX / 2 / members->count);
		else
			api_task_add_series(
			    task, members->processes[i], most < PROFILES_LEAST ? PROFILES_LEAST : most);
		for (size_t item = before; item < task->base.count; item++) {
			task->base.items[item].column = i;
			task->base.items[item].owner = item; /* a profile that is gone is one point less */
		}
	}
	describe_sum(task, members);
	task->question.column_count = members->count;
	task->question.points = task->points;
	task->question.owners = task->owners;
	task->question.members = task->members;
	task->question.from_ns = members->from_ns;
	return err;
}

static const char *get(const void *context, const char *name)
{
	return parameters_get(context, name);
}

static bool is_plain(const struct request *request)
{
	struct api_query query;
	char error[512];
	/* If the query is wrong, the job refuses it. */
	bool plain = !api_query_parse(&query, get, &request->route.parameters, error, sizeof(error)) &&
	    api_query_is_plain(&query);

	api_query_fini(&query);
	return plain;
}

static void of_service(struct request *request)
{
	struct members members;
	struct api_task *task;

	find_members(request, &members);
	task = api_task_new(request, members.count * PROFILES_LEAST + PROFILES_MAX, request->route.service,
	    api_answer_timeline);
	if (!task)
		return;
	if (fill_sum(task, &members, is_plain(request)))
		request_refuse(request, 500, "out of memory");
	else
		api_task_begin(task, NULL);
}

void answer_timeline(struct request *request)
{
	const struct catalog_process *chosen[2];

	/* If a single process of the service runs, ended processes do not count. */
	if (request->route.scope == ROUTE_SERVICE && !request_parameter(request, "id") &&
	    catalog_choose(request->server->catalog, &request->route, chosen, 2) > 1)
		of_service(request);
	else
		of_process(request);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/timeline: of one process, or of a service the sum of its processes. */
#include "serve/api_lists.h"

#include "pprof/model/profile.h"
#include "serve/api_task.h"
#include "serve/endpoint_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	POINTS_MAX = 1 << 15, /* of all processes of a service */
	PROFILES_MAX = 96,    /* that are read if filters are given, unless there are too many processes */
	PROFILES_LEAST = 2,   /* that are read of each process, at least */
	SERIES_MAX = 48,      /* profiles that are read of a single process */
};

/* ---- the sum of several processes */

#define STEP_NS_MIN INT64_C(1000000000)

/* What is known of a process at the present moment. */
struct present {
	const struct api_point *last; /* its last point; NULL: there is none yet, or it has ended */
	size_t left;                  /* the number of its later points */
	bool seen, has_profile;       /* seen: it had a point. has_profile: it had a profile */
};

static int compare(const void *left, const void *right)
{
	const struct api_sum_event *a = left, *b = right;

	if (a->point.time_ns != b->point.time_ns)
		return a->point.time_ns < b->point.time_ns ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

/* Does a process end with this point? */
static bool is_left(const struct api_sum_input *input, const struct present *present)
{
	for (size_t i = 0; i < input->process_count; i++)
		if (present[i].last && !present[i].left && !input->processes[i].running)
			return true;
	return false;
}

static struct api_point sum_at(
    const struct api_sum_input *input, const struct present *present, int64_t time_ns)
{
	struct api_point sum = {.time_ns = time_ns, .known = true};
	bool have_profiles = true;

	for (size_t i = 0; i < input->process_count; i++) {
		const struct api_point *last = present[i].last;
		const int64_t start_ns = input->processes[i].start_ns;

		if (!last) {
			sum.missing += !present[i].seen && present[i].left && start_ns && start_ns <= time_ns;
			continue;
		}
		sum.processes++;
		have_profiles = have_profiles && present[i].has_profile;
		sum.value += last->value;
		sum.error += last->error;
		sum.samples += last->samples;
		sum.known = sum.known && last->known;
		if (sum.rss_bytes >= 0)
			sum.rss_bytes = last->rss_bytes < 0 ? -1 : sum.rss_bytes + last->rss_bytes;
	}
	if (have_profiles && !sum.missing && !is_left(input, present))
		snprintf(sum.id, sizeof(sum.id), "at-%" PRId64, time_ns);
	return sum;
}

static void take(const struct api_sum_event *event, struct present *present)
{
	struct present *of = &present[event->process];

	of->last = &event->point;
	of->seen = true;
	of->has_profile = of->has_profile || event->point.id[0];
	of->left--;
}

/* Drops processes that have ended, when their last point has been counted. */
static void leave(const struct api_sum_input *input, struct present *present)
{
	for (size_t i = 0; i < input->process_count; i++)
		if (!present[i].left && !input->processes[i].running)
			present[i].last = NULL;
}

int api_lists_sum(const struct api_sum_input *input, struct api_point *points, size_t *count)
{
	struct present *present = calloc(input->process_count + 1, sizeof(*present));
	struct api_sum_event *events = input->events;
	const size_t all = input->event_count;
	int64_t step_ns;

	*count = 0;
	if (!present)
		return -ENOMEM;
	if (all)
		qsort(events, all, sizeof(*events), compare);
	for (size_t i = 0; i < all; i++)
		present[events[i].process].left++;
	step_ns =
	    all ? (events[all - 1].point.time_ns - events[0].point.time_ns) / (API_SUM_POINTS - 1) + 1 : 0;
	step_ns = step_ns < STEP_NS_MIN ? STEP_NS_MIN : step_ns;
	for (size_t i = 0, next; i < all; i = next) {
		bool has_profile = false;

		for (next = i; next < all && events[next].point.time_ns - events[i].point.time_ns < step_ns;
		     next++) {
			take(&events[next], present);
			has_profile = has_profile || events[next].point.id[0];
		}
		if (events[next - 1].point.time_ns >= input->from_ns) {
			points[*count] = sum_at(input, present, events[next - 1].point.time_ns);
			if (!has_profile)
				points[*count].id[0] = '\0';
			++*count;
		}
		leave(input, present);
	}
	free(present);
	return 0;
}

/* ---- the answer, in the thread of jobs */

/* All of it is freed with the task; the arrays are owned. */
struct timeline {
	struct api_task api;
	struct api_process process;
	char program[CATALOG_NAME_BYTES], name[CATALOG_NAME_BYTES], service[CATALOG_NAME_BYTES], host[65],
	    session[64], id[TASK_ID_BYTES];
	struct api_point *points; /* of moments that no profile is of */
	size_t point_count;
	/* Of a sum over several processes. */
	size_t *owners; /* of each point: the number of its process; a profile's is its column */
	struct api_sum_process *members; /* NULL: a time line of one process */
	size_t member_count;
	int64_t from_ns;
};

static int compare_points(const void *left, const void *right)
{
	const struct api_point *a = left, *b = right;

	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* A profile without the values that the query asks for is no point. */
static int add_profile(struct api_point *points, size_t *count, const struct timeline *timeline, size_t index,
    const struct api_query *query, struct blob_budget *budget, char *error, size_t error_bytes)
{
	struct profile *profile;
	int err;

	budget->left_bytes = API_TASK_MEMORY_MAX / 2; /* one profile at a time */
	err = api_task_decode(timeline->api.base.items[index].profile, budget, &profile, error, error_bytes);
	if (err)
		return err;
	err = api_facts_point(&points[*count], profile, query);
	profile_free(profile);
	if (err == -ENODATA || err == -EINVAL)
		return 0;
	if (!err) {
		snprintf(points[*count].id, sizeof(points->id), "%s", timeline->api.base.items[index].id);
		++*count;
	}
	return err;
}

/* First the points of profiles, then those of lists. A list is about the whole heap, so its points are no
 * answer to a filter. owners: the number of each point's process. */
static int collect(const struct timeline *timeline, const struct api_query *query, struct api_point *points,
    size_t *owners, size_t *count, char *error, size_t error_bytes)
{
	struct blob_budget budget = {.foreign_left_bytes = BLOB_FOREIGN_BYTES};
	int err = 0;

	for (size_t i = 0; i < timeline->api.base.count && !err; i++) {
		owners[*count] = timeline->api.base.items[i].column;
		err = add_profile(points, count, timeline, i, query, &budget, error, error_bytes);
	}
	for (size_t i = 0; i < timeline->point_count && !err && api_query_is_plain(query); i++) {
		owners[*count] = timeline->owners ? timeline->owners[i] : 0;
		points[(*count)++] = timeline->points[i];
	}
	return err;
}

static int add_up(
    const struct timeline *timeline, struct api_point **points, const size_t *owners, size_t *count)
{
	struct api_sum_event *events = calloc(*count + 1, sizeof(*events));
	struct api_point *sums = calloc(API_SUM_POINTS + 1, sizeof(*sums));
	const struct api_sum_input input = {
	    events, *count, timeline->members, timeline->member_count, timeline->from_ns};
	int err = events && sums ? 0 : -ENOMEM;

	for (size_t i = 0; i < *count && !err; i++)
		events[i] = (struct api_sum_event){(*points)[i], owners[i]};
	if (!err)
		err = api_lists_sum(&input, sums, count);
	free(events);
	if (err) {
		free(sums);
		return err;
	}
	free(*points);
	*points = sums;
	return 0;
}

static int write_timeline(
    FILE *out, const struct api_task *task, const struct api_query *query, char *error, size_t error_bytes)
{
	const struct timeline *timeline = (const struct timeline *)task;
	const size_t room = timeline->api.base.count + timeline->point_count + 1;
	struct api_point *points = calloc(room, sizeof(*points));
	size_t *owners = calloc(room, sizeof(*owners)), count = 0;
	struct api_process process = timeline->process;
	int err = points && owners ? 0 : -ENOMEM;

	if (!err)
		err = collect(timeline, query, points, owners, &count, error, error_bytes);
	if (!err && timeline->members)
		err = add_up(timeline, &points, owners, &count);
	if (!err) {
		if (count)
			qsort(points, count, sizeof(*points), compare_points);
		process.points = points;
		process.point_count = count;
		process.is_sum = timeline->members != NULL;
		api_lists_write_timeline(out, &process, query);
	}
	free(points);
	free(owners);
	return err;
}

static void make(struct task *task)
{
	api_task_answer_json((struct api_task *)task, write_timeline);
}

static void free_data(struct task *task)
{
	struct timeline *timeline = (struct timeline *)task;

	api_task_free_data(task);
	free(timeline->points);
	free(timeline->owners);
	free(timeline->members);
}

/* NULL: the request was refused. */
static struct timeline *new_timeline(struct request *request, size_t room, const char *title)
{
	struct timeline *timeline = api_task_new(request, sizeof(*timeline), room, title, make);

	if (timeline)
		timeline->api.base.free_data = free_data;
	return timeline;
}

/* ---- one process */

static void describe(struct timeline *timeline, const struct catalog_process *process)
{
	snprintf(timeline->program, sizeof(timeline->program), "%s", process->program);
	snprintf(timeline->name, sizeof(timeline->name), "%s", process->name);
	snprintf(timeline->service, sizeof(timeline->service), "%s", process->service);
	snprintf(timeline->host, sizeof(timeline->host), "%s", process->host);
	snprintf(timeline->session, sizeof(timeline->session), "%s", process->session);
	timeline->process = (struct api_process){.id = timeline->id,
	    .pid = process->key.pid,
	    .program = timeline->program,
	    .name = timeline->name,
	    .service = timeline->service,
	    .host = timeline->host,
	    .session = timeline->session,
	    .start_ns = process->start_ns,
	    .running = process->listed != NULL,
	    .rss_bytes = process->listed ? (int64_t)process->listed->rss_bytes : -1,
	    .profile_count = process->file_count};
}

static void of_process(struct request *request)
{
	const struct catalog_process *process = api_task_process(request);
	struct timeline *timeline = process ? new_timeline(request, SERIES_MAX, process->service) : NULL;

	if (!timeline)
		return;
	api_task_add_series(&timeline->api, process, SERIES_MAX - 1);
	timeline->points = api_lists_points(process, &timeline->point_count, 0);
	api_lists_id(process, timeline->id);
	describe(timeline, process);
	api_task_begin(&timeline->api, NULL);
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
    struct timeline *timeline, const struct catalog_process *process, size_t member, size_t most)
{
	size_t *count = &timeline->point_count, listed, all, step;
	struct api_point *points = api_lists_points(process, &listed, most);

	if (!points)
		return -1;
	for (size_t i = 0; i < listed && *count < POINTS_MAX; i++) {
		timeline->owners[*count] = member;
		timeline->points[(*count)++] = points[i];
	}
	free(points);
	all = process->file_count;
	step = all / most + 1;
	for (size_t i = 0; i < all && *count < POINTS_MAX; i++) {
		const struct catalog_file *file = process->files[i];

		if (!catalog_file_is_state(file) || !file->point.time_ns || (all - 1 - i) % step)
			continue;
		timeline->owners[*count] = member;
		timeline->points[*count] = file->point;
		process_profiles_file_id(timeline->points[(*count)++].id, file);
	}
	return 0;
}

static void describe_sum(struct timeline *timeline, const struct members *members)
{
	struct api_process *to = &timeline->process;

	describe(timeline, members->processes[members->count - 1]);
	timeline->id[0] = timeline->session[0] = '\0';
	to->pid = 0;
	to->rss_bytes = -1;
	to->profile_count = 0;
	to->is_sum = true;
	memcpy(timeline->name, timeline->program, sizeof(timeline->name));
	for (size_t i = 0; i < members->count; i++) {
		const struct catalog_process *process = members->processes[i];

		timeline->members[i] = (struct api_sum_process){process->start_ns, process->listed != NULL};
		to->running = to->running || process->listed;
		to->profile_count += process->file_count;
		to->start_ns = process->start_ns < to->start_ns ? process->start_ns : to->start_ns;
		if (strcmp(process->program, timeline->program) != 0)
			timeline->program[0] = timeline->name[0] = '\0';
		if (process->listed)
			to->rss_bytes =
			    (to->rss_bytes < 0 ? 0 : to->rss_bytes) + (int64_t)process->listed->rss_bytes;
	}
}

/* Without filters the points that are known already will do. Else some profiles of each process are read. */
static int fill_sum(struct timeline *timeline, const struct members *members, bool plain)
{
	int err = 0;

	timeline->members = calloc(members->count, sizeof(*timeline->members));
	timeline->points = calloc(POINTS_MAX, sizeof(*timeline->points));
	timeline->owners = calloc(POINTS_MAX, sizeof(*timeline->owners));
	if (!timeline->members || !timeline->points || !timeline->owners)
		return -1;
	for (size_t i = 0; i < members->count && !err; i++) {
		size_t before = timeline->api.base.count, most = PROFILES_MAX / members->count;

		if (plain)
			err = add_points(timeline, members->processes[i], i, POINTS_MAX / 2 / members->count);
		else
			api_task_add_series(&timeline->api, members->processes[i],
			    most < PROFILES_LEAST ? PROFILES_LEAST : most);
		for (size_t item = before; item < timeline->api.base.count; item++) {
			timeline->api.base.items[item].column = i;
			/* A profile that is gone is one point less. */
			timeline->api.base.items[item].owner = item;
		}
	}
	describe_sum(timeline, members);
	timeline->member_count = members->count;
	timeline->from_ns = members->from_ns;
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
	struct timeline *timeline;

	find_members(request, &members);
	timeline =
	    new_timeline(request, members.count * PROFILES_LEAST + PROFILES_MAX, request->route.service);
	if (!timeline)
		return;
	if (fill_sum(timeline, &members, is_plain(request)))
		request_refuse(request, 500, "out of memory");
	else
		api_task_begin(&timeline->api, NULL);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1: the views of what processes had in use at one moment (top, tree, leaks, a profile as a file), at
 * two (diff) and at many (growth), and a snapshot on disk.
 */
#include "pprof/analysis/moments.h"
#include "pprof/analysis/trend.h"
#include "pprof/text/clock.h"
#include "pprof/text/json.h"
#include "pprof/text/utf8.h"
#include "serve/api_task.h"
#include "serve/api_view.h"
#include "serve/endpoint_list.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- several processes at common moments */

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
	struct api_task *task = api_task_new(
	    request, sizeof(*task), members->count * moment_count, request->route.service, api_task_view);

	if (!task)
		return;
	for (size_t at = 0; at < moment_count; at++)
		for (size_t i = 0; i < members->count; i++)
			add_state(task, members, i, at, moments_ns[at]);
	task->view = view;
	task->column_count = moment_count;
	api_task_begin(task, "none of these processes is known at that moment");
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

/* Reads "at-NANOSECONDS", as the time line of a service has it, or "now". False: the id has neither form. */
static bool read_moment(const char *id, int64_t *moment_ns)
{
	int length = 0;

	if (strcmp(id, "now") == 0) {
		*moment_ns = clock_unix_ns();
		return true;
	}
	return sscanf(id, "at-%19" SCNd64 "%n", moment_ns, &length) == 1 && !id[length];
}

/* Answers with one column a moment: the states of all processes that the route means, added up. */
static void answer_sum_at(
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

/* ---- growth */

static size_t moments_most(size_t process_count)
{
	const size_t most = PROFILES_MOST / process_count;

	return most > MOMENTS_MOST ? MOMENTS_MOST : most < TREND_POINTS_LEAST ? TREND_POINTS_LEAST : most;
}

static void answer_chosen(struct request *request, const struct members *members)
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

static void grow(struct request *request, const struct catalog_process *const *chosen, size_t chosen_count)
{
	struct members members;

	if (find_members(request, &members, chosen, chosen_count))
		answer_chosen(request, &members);
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

/* ---- which profiles */

/* at=: "1795348560.25" -> ns since 1970; 0 if it is not given. False: the request was refused. */
static bool read_at(struct request *request, int64_t *at_ns)
{
	const char *text = request_parameter(request, "at");
	char *end = NULL;
	double seconds = text ? strtod(text, &end) : 0;

	*at_ns = 0;
	if (!text)
		return true;
	if (*end || !(seconds > 0 && seconds < 9e9)) {
		request_refuse(
		    request, 400, "at: not a time; allowed: seconds since 1970, with decimals if wanted");
		return false;
	}
	*at_ns = (int64_t)llround(seconds * 1e9);
	return true;
}

/* state=: the peak of a process, or what it has in use. False: the request was refused. */
static bool read_state(struct request *request, bool *peak)
{
	const char *text = request_parameter(request, "state");

	*peak = text && strcmp(text, "peak") == 0;
	if (!text || *peak || strcmp(text, "newest") == 0)
		return true;
	request_refuse(request, 400, "state: allowed: newest, peak");
	return false;
}

/* Adds the profile that the parameter names. False: the request was refused. */
static bool add_by_id(struct request *request, struct api_task *task, const char *name)
{
	const char *id = request_parameter(request, name);
	char text[160];

	if (!id) {
		snprintf(text, sizeof(text),
		    "%s= is missing: the id of a profile, as /api/v1/profiles has it", name);
		request_refuse(request, 400, text);
		return false;
	}
	if (!process_profiles_by_id(
	        request->server->catalog, request->server->snapshots, id, api_task_next(task))) {
		request_refuse(request, 404, "there is no profile with that id any more");
		return false;
	}
	task->base.count++;
	return true;
}

/* ---- one moment */

/* Is the answer the page's graph, of what is in use now or was in use at a moment? */
static bool has_peak_beside(const struct request *request)
{
	const char *layout = request_parameter(request, "layout"),
	           *state = request_parameter(request, "state");

	return strcmp(request_name(request), "tree") == 0 && layout && strcmp(layout, "columns") == 0 &&
	    (!state || strcmp(state, "peak") != 0);
}

/* Adds the peaks of these processes as the second column, if each has a peak. */
static void add_peaks(struct api_task *task, const struct catalog_process *const *processes, size_t count)
{
	const size_t first = task->base.count;

	for (size_t i = 0; i < count; i++) {
		struct task_item *item = api_task_next(task);

		if (!process_profiles_of(
		        processes[i], task->base.request->server->snapshots, 0, true, item)) {
			task->base.count = first;
			return;
		}
		item->column = 1;
		item->owner = count + i; /* a peak that is gone takes nothing else with it */
		task->base.count++;
	}
	task->column_count = 2;
}

/* One column: the profile of an id, or those of the processes that are meant. The page's graph has a second
 * column, of their peaks. */
static void answer_moment(
    struct request *request, const struct api_view *view, void (*make)(struct task *task))
{
	const struct catalog_process *chosen[REQUEST_PROCESSES_MAX];
	const char *id = request_parameter(request, "id");
	struct api_task *task;
	int64_t at_ns;
	size_t count;
	bool peak;

	if (!read_at(request, &at_ns) || !read_state(request, &peak))
		return;
	if (id && view && request->route.scope == ROUTE_SERVICE && read_moment(id, &at_ns)) {
		answer_sum_at(request, view, &at_ns, 1);
		return;
	}
	if (id)
		chosen[0] = process_profiles_owner(request->server->catalog, id);
	count = id ? 1 : api_task_processes(request, chosen);
	task = count ? api_task_new(request, sizeof(*task), 2 * count, id ? "" : chosen[0]->service, make)
	             : NULL;
	if (!task || (id && !add_by_id(request, task, "id")))
		return;
	task->view = view;
	task->column_count = 1;
	for (size_t i = 0; i < count && !id; i++) {
		struct task_item *item = api_task_next(task);

		item->owner = task->base.count;
		task->base.count +=
		    process_profiles_of(chosen[i], request->server->snapshots, at_ns, peak, item);
	}
	if (has_peak_beside(request) && task->base.count == count && chosen[0])
		add_peaks(task, chosen, count);
	api_task_begin(task, "there is no such profile");
}

void answer_view(struct request *request)
{
	answer_moment(request, api_view_find(request_name(request)), api_task_view);
}

void answer_profile(struct request *request)
{
	answer_moment(request, NULL, api_task_file);
}

/* ---- two moments */

void answer_diff(struct request *request)
{
	const struct api_view *view = api_view_find("diff");
	const char *base = request_parameter(request, "base"), *new = request_parameter(request, "new");
	int64_t moments_ns[2];
	struct api_task *task;

	if (request->route.scope == ROUTE_SERVICE && base && new &&read_moment(base, &moments_ns[0]) &&
	    read_moment(new, &moments_ns[1])) {
		answer_sum_at(request, view, moments_ns, 2);
		return;
	}
	task = api_task_new(request, sizeof(*task), 2, "", api_task_view);
	if (!task || !add_by_id(request, task, "base") || !add_by_id(request, task, "new"))
		return;
	task->base.items[1].column = 1;
	task->view = view;
	task->column_count = 2;
	api_task_begin(task, NULL);
}

/* ---- a snapshot as a file */

/* {"path": ...} */
static void set_path(struct reply *reply, const char *path)
{
	char *text = NULL, clean[BROKER_TEXT_BYTES];
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	struct json json = {.out = out};

	snprintf(clean, sizeof(clean), "%s", path);
	utf8_disarm(clean, strlen(clean));
	if (out) {
		json_object(&json, NULL);
		json_text(&json, "path", clean);
		json_end(&json);
	}
	if (out && fclose(out) == 0)
		reply_bytes(reply, 200, REPLY_JSON, blob_new(text, length));
	else
		reply_json_error(reply, 500, "out of memory");
}

static void on_snapshot(void *context, const struct broker_reply *reply, int fd)
{
	struct request *request = context;

	request->broker_id = 0;
	if (fd >= 0)
		close(fd);
	if (reply->error) {
		request_refuse(request, reply->error == -EBUSY ? 503 : 500, reply->text);
		return;
	}
	set_path(&request->reply, reply->text);
	request_finish(request);
}

void answer_snapshot(struct request *request)
{
	const struct catalog_process *process = api_task_process(request);

	if (!process)
		return;
	if (!process->listed) {
		request_refuse(request, 404, "the process is not profiled any more");
		return;
	}
	const struct broker_question question = {
	    .verb = BROKER_SNAPSHOT, .server = process->key.server, .pid = process->key.pid};
	request->broker_id = broker_client_ask(request->server->broker, &question, on_snapshot, request);
	if (!request->broker_id)
		request_refuse(request, 503, "too many other requests are waiting");
}

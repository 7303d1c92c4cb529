/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1: the views of one moment (top, tree, leaks), diff, a profile as a file, and a snapshot on disk. */
#include "pprof/text/json.h"
#include "pprof/text/utf8.h"
#include "serve/api_growth.h"
#include "serve/api_task.h"
#include "serve/endpoint_list.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

		if (!process_profiles_of(processes[i], task->base.snapshots, 0, true, item)) {
			task->base.count = first;
			return;
		}
		item->column = 1;
		item->owner = count + i; /* a peak that is gone takes nothing else with it */
		task->base.count++;
	}
	task->question.column_count = 2;
}

/* One column: the profile of an id, or those of the processes that are meant. The page's graph has a second
 * column, of their peaks. */
static void answer_moment(struct request *request, const struct api_view *view,
    void (*answer)(struct reply *reply, const struct api_question *question))
{
	const struct catalog_process *chosen[REQUEST_PROCESSES_MAX];
	const char *id = request_parameter(request, "id");
	struct api_task *task;
	int64_t at_ns;
	size_t count;
	bool peak;

	if (!read_at(request, &at_ns) || !read_state(request, &peak))
		return;
	if (id && view && request->route.scope == ROUTE_SERVICE && api_growth_moment(id, &at_ns)) {
		api_growth_answer_at(request, view, &at_ns, 1);
		return;
	}
	if (id)
		chosen[0] = process_profiles_owner(request->server->catalog, id);
	count = id ? 1 : api_task_processes(request, chosen);
	task = count ? api_task_new(request, 2 * count, id ? "" : chosen[0]->service, answer) : NULL;
	if (!task || (id && !add_by_id(request, task, "id")))
		return;
	task->question.view = view;
	task->question.column_count = 1;
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
	answer_moment(request, api_view_find(request_name(request)), api_answer_view);
}

void answer_profile(struct request *request)
{
	answer_moment(request, NULL, api_answer_file);
}

/* ---- two moments */

void answer_diff(struct request *request)
{
	const struct api_view *view = api_view_find("diff");
	const char *base = request_parameter(request, "base"), *new = request_parameter(request, "new");
	int64_t moments_ns[2];
	struct api_task *task;

	if (request->route.scope == ROUTE_SERVICE && base && new &&api_growth_moment(base, &moments_ns[0]) &&
	    api_growth_moment(new, &moments_ns[1])) {
		api_growth_answer_at(request, view, moments_ns, 2);
		return;
	}
	task = api_task_new(request, 2, "", api_answer_view);
	if (!task || !add_by_id(request, task, "base") || !add_by_id(request, task, "new"))
		return;
	task->base.items[1].column = 1;
	task->question.view = view;
	task->question.column_count = 2;
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

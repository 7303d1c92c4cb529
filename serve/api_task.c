/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which processes */

size_t api_task_processes(
    struct request *request, const struct catalog_process *chosen[REQUEST_PROCESSES_MAX])
{
	size_t count =
	    catalog_choose(request->server->catalog, &request->route, chosen, REQUEST_PROCESSES_MAX);

	if (!count)
		request_refuse(request, 404, "there is no such process");
	else if (count > 1 && request->route.scope == ROUTE_ANY)
		request_refuse(
		    request, 400, "several processes are profiled: choose by id=, pid= or service=");
	else if (count > REQUEST_PROCESSES_MAX)
		request_refuse(request, 413, "too many processes for one answer");
	else
		return count;
	return 0;
}

const struct catalog_process *api_task_process(struct request *request)
{
	const struct catalog_process *chosen[REQUEST_PROCESSES_MAX], *owner;
	const char *id = request_parameter(request, "id");
	size_t count;

	if (id) {
		owner = process_profiles_owner(request->server->catalog, id);
		if (!owner)
			request_refuse(request, 404, "there is no profile with that id any more");
		return owner;
	}
	count = api_task_processes(request, chosen);
	if (count < 2)
		return count ? chosen[0] : NULL;
	request_refuse(request, 400,
	    request->route.scope == ROUTE_PID
	        ? "several processes had this pid: choose by the id= of a profile"
	        : "the service has several processes: choose one by pid=");
	return NULL;
}

/* ---- the task */

static void make(struct task *base)
{
	const struct api_task *task = (const struct api_task *)base;

	task->answer(&base->reply, &task->question);
}

static void free_data(struct task *base)
{
	struct api_task *task = (struct api_task *)base;

	free(task->query);
	free(task->title);
	free(task->points);
	free(task->owners);
	free(task->members);
}

/* If one profile of an owner is gone, all profiles of that owner are left out: the process may end meanwhile,
 * and its files go one by one. */
static int drop_gone(struct task *base)
{
	bool *gone;
	size_t owners = 0, kept = 0;

	for (size_t i = 0; i < base->count; i++)
		owners = base->items[i].owner >= owners ? base->items[i].owner + 1 : owners;
	gone = calloc(owners + 1, sizeof(*gone));
	if (!gone)
		return -1;
	for (size_t i = 0; i < base->count; i++)
		gone[base->items[i].owner] = gone[base->items[i].owner] || base->items[i].error;
	for (size_t i = 0; i < base->count; i++) {
		if (gone[base->items[i].owner])
			blob_drop(base->items[i].profile);
		else
			base->items[kept++] = base->items[i];
	}
	base->count = kept;
	free(gone);
	return 0;
}

static void on_fetched(struct task *base)
{
	struct api_task *task = (struct api_task *)base;
	const struct task_item *failure = task_failure_of_sum(base), *gone = task_failure(base);
	const struct task_item why = failure ? *failure : gone ? *gone : (struct task_item){.error = 0};

	if (!failure && drop_gone(base)) {
		request_refuse(base->request, 500, "out of memory");
		return;
	}
	if (failure || (gone && !base->count)) {
		request_refuse(base->request, task_failure_status(&why), why.why);
		return;
	}
	task->question.items = base->items;
	task->question.count = base->count;
	request_make_reply(base->request);
}

struct api_task *api_task_new(struct request *request, size_t room, const char *title,
    void (*answer)(struct reply *reply, const struct api_question *question))
{
	struct api_task *task = request_new_task(request, sizeof(*task), room);

	if (!task)
		return NULL;
	task->base.make = make;
	task->base.free_data = free_data;
	task->base.fetched = on_fetched;
	task->answer = answer;
	task->query = strdup(request->route.query);
	task->title = strdup(title);
	task->question =
	    (struct api_question){.query = task->query, .title = task->title, .process = &task->process};
	if (task->query && task->title)
		return task;
	request_refuse(request, 500, "out of memory");
	return NULL;
}

struct task_item *api_task_next(struct api_task *task)
{
	return &task->base.items[task->base.count];
}

void api_task_set_now(struct task_item *item, const struct catalog_process *process)
{
	item->kind = TASK_NOW;
	item->key = process->key;
	snprintf(item->id, sizeof(item->id), "now-%d", (int)process->key.pid);
}

void api_task_add_series(struct api_task *task, const struct catalog_process *process, size_t most)
{
	task->base.count += process_profiles_series(process, task->base.request->server->snapshots, api_task_next(task), most);
}

void api_task_begin(struct api_task *task, const char *text_of_none)
{
	if (task->base.count || !text_of_none)
		task_fetch(&task->base, 0, 0);
	else
		request_refuse(task->base.request, 404, text_of_none);
}

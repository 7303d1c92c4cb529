/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/request.h"

#include <stdlib.h>
#include <string.h>

struct request *request_new(struct server *server, const char *target)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->server = server;
	request->error = route_parse(&request->route, target);
	return request;
}

static void end_wait(const struct request *request)
{
	struct server *server = request->server;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < server->waits; i++)
		if (server->waiting[i] != request)
			server->waiting[kept++] = server->waiting[i];
	server->waits = kept;
}

void request_stop(struct request *request)
{
	task_drop(request->task);
	request->task = NULL;
	catalog_leave(&request->waiter);
	broker_client_cancel(request->server->broker, request->broker_id);
	request->broker_id = 0;
	request->wake_ns = 0;
	end_wait(request);
}

void request_free(struct request *request)
{
	if (!request)
		return;
	request_stop(request);
	reply_fini(&request->reply);
	route_fini(&request->route);
	free(request->body);
	free(request);
}

void request_finish(struct request *request)
{
	end_wait(request);
	request->wake_ns = 0;
	request->state = REQUEST_ANSWERED;
	request->finished(request);
}

void request_set_refusal(struct request *request, unsigned int status, const char *text)
{
	if (request->endpoint && request->endpoint->errors == ENDPOINT_JSON)
		reply_json_error(&request->reply, status, text);
	else
		reply_go_error(&request->reply, status, text);
}

void request_refuse(struct request *request, unsigned int status, const char *text)
{
	request->server->refused += status == 503;
	request_set_refusal(request, status, text);
	request_finish(request);
}

const char *request_name(const struct request *request)
{
	return strrchr(request->endpoint->path, '/') + 1;
}

const char *request_parameter(const struct request *request, const char *name)
{
	const char *value = parameters_get(&request->route.parameters, name);

	return value && *value ? value : NULL;
}

/* ---- the task */

static void on_made(struct task *task)
{
	struct request *request = task->request;

	request->task = NULL; /* frees the profiles now, since sending the reply may take long */
	if (task->job.refused) {
		task_drop(task);
		request_refuse(request, 503, "too much to do: try again later");
		return;
	}
	if (task->made)
		task->made(task);
	reply_fini(&request->reply);
	request->reply = task->reply;
	task->reply = (struct reply){0};
	task_drop(task);
	request_finish(request);
}

void *request_new_task(struct request *request, size_t bytes, size_t room)
{
	const struct server *server = request->server;
	struct task *task = task_new(bytes, room);

	if (!task) {
		request_refuse(request, 500, "out of memory");
		return NULL;
	}
	task->request = request;
	task->broker = server->broker;
	task->snapshots = server->snapshots;
	task->has_gzip = client_takes_gzip(&request->client);
	task->finished = on_made;
	request->task = task;
	return task;
}

void request_make_reply(struct request *request)
{
	struct task *task = request->task;

	task->job.client = request->client.key;
	if (task_submit(task, request->server->jobs))
		return;
	request->task = NULL;
	task_drop(task);
	request_refuse(request, 503, "too much to do: try again later");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/request.h"

#include "pprof/codec/gzip.h"
#include "pprof/text/utf8.h"
#include "serve/blob.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GZIP_BYTES_MIN = 1024 };

#define FILE_BYTES_MAX (UINT64_C(256) << 20)

/* ---- the end of a task */

static void cancel(struct task *task)
{
	for (size_t i = 0; i < task->count; i++) {
		struct task_item *item = &task->items[i];

		if (item->pending && item->kind == TASK_NOW)
			snapshots_leave(&item->waiter);
		if (item->pending && item->broker_id)
			broker_client_cancel(task->request->server->broker, item->broker_id);
		item->pending = false;
		item->broker_id = 0;
	}
	task->pending = 0;
}

/* Drops the task, in any state. A task in the thread of jobs goes away when its reply is made. NULL
 * is fine. */
static void drop_task(struct task *task)
{
	if (!task)
		return;
	if (task->is_submitted) {
		task->request = NULL;
		return;
	}
	cancel(task);
	for (size_t i = 0; i < task->count; i++)
		blob_drop(task->items[i].profile);
	if (task->free_data)
		task->free_data(task);
	reply_fini(&task->reply);
	free(task->items);
	free(task);
}

/* ---- the request */

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
	drop_task(request->task);
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

/* ---- its task: what it fetches */

void *request_new_task(struct request *request, size_t bytes, size_t room)
{
	struct task *task = calloc(1, bytes);

	if (task)
		task->items = calloc(room + 1, sizeof(*task->items));
	if (!task || !task->items) {
		free(task);
		request_refuse(request, 500, "out of memory");
		return NULL;
	}
	task->request = request;
	task->has_gzip = client_takes_gzip(&request->client);
	request->task = task;
	return task;
}

static void settle(struct task_item *item, struct blob *profile, int error, const char *why)
{
	struct task *task = item->task;

	task->bytes += profile ? profile->length : 0;
	if (task->bytes > TASK_BYTES_MAX) {
		blob_drop(profile);
		profile = NULL;
		error = -EFBIG;
		why = "the profiles together are too large";
	}
	item->pending = false;
	item->profile = profile;
	item->error = error;
	snprintf(item->why, sizeof(item->why), "%.255s", error ? why : "");
	utf8_disarm(item->why, strlen(item->why)); /* a sampler of another user may have said it */
	if (--task->pending == 0)
		task->fetched(task);
}

static void on_snapshot(struct snapshots_waiter *waiter, struct blob *profile, int error, const char *why)
{
	struct task_item *item = (struct task_item *)((char *)waiter - offsetof(struct task_item, waiter));

	settle(item, profile, error, why);
}

static void on_reply(void *context, const struct broker_reply *reply, int fd)
{
	struct task_item *item = context;
	int error = reply->error ? reply->error : fd < 0 ? -EPROTO : 0;
	struct blob *profile = NULL;

	item->broker_id = 0;
	if (!error && reply->bytes > FILE_BYTES_MAX)
		error = -EFBIG;
	if (!error)
		profile = blob_read(fd, reply->bytes, &error);
	else if (fd >= 0)
		close(fd);
	if (profile)
		profile->foreign = item->key.foreign;
	settle(item, profile, error, reply->text[0] ? reply->text : strerror(-error));
}

static void begin_one(struct task_item *item)
{
	struct task *task = item->task;
	const struct server *server = task->request->server;
	const struct broker_question question = {.server = item->key.server,
	    .pid = item->key.pid,
	    .file = item->file,
	    .duration_ms = item->duration_ms,
	    .verb = item->kind == TASK_CPU ? BROKER_CPU : BROKER_OPEN};

	if (item->kind == TASK_READY) {
		settle(item, item->profile, 0, "");
	} else if (item->kind == TASK_NOW) {
		item->waiter.got = on_snapshot;
		snapshots_want(server->snapshots, &item->key, &item->waiter, task->not_before_ns);
	} else {
		item->broker_id = broker_client_ask(server->broker, &question, on_reply, item);
		if (!item->broker_id)
			settle(item, NULL, -EBUSY, "too many other requests are waiting");
	}
}

/* CPU time cannot be sampled later: if it cannot be sampled of one process now, the others' time is
 * wasted. */
static bool is_refused(const struct task *task)
{
	for (size_t i = 0; i < task->count; i++)
		if (task->items[i].kind == TASK_CPU && task->items[i].error)
			return true;
	return false;
}

void task_fetch(struct task *task, size_t first, uint64_t not_before_ns)
{
	task->not_before_ns = not_before_ns;
	/* One more than there are, so that fetched() is not called before all have begun. */
	task->pending = task->count - first + 1;
	for (size_t i = first; i < task->count; i++) {
		task->items[i].task = task;
		task->items[i].pending = true;
		begin_one(&task->items[i]);
	}
	task->pending--;
	if (is_refused(task))
		cancel(task);
	if (task->pending == 0)
		task->fetched(task);
}

const struct task_item *task_failure(const struct task *task)
{
	for (size_t i = 0; i < task->count; i++)
		if (task->items[i].error)
			return &task->items[i];
	return NULL;
}

/* A process that has ended and a file that was removed: a sum is made without them. */
static bool is_gone(const struct task_item *item)
{
	return item->error == -ESRCH || item->error == -ENOENT;
}

const struct task_item *task_failure_of_sum(const struct task *task)
{
	size_t gone = 0;

	for (size_t i = 0; i < task->count; i++) {
		if (task->items[i].error && !is_gone(&task->items[i]))
			return &task->items[i];
		gone += task->items[i].error != 0;
	}
	return gone == task->count ? task_failure(task) : NULL;
}

unsigned int task_failure_status(const struct task_item *failure)
{
	switch (failure->error) {
	case -EBUSY:
		return 503;
	case -ESRCH:
	case -ENOENT:
		return 404;
	case -EFBIG:
		return 413;
	default:
		return 500;
	}
}

/* ---- its task: the reply */

/* A large text shrinks to a tenth. Profiles are compressed already, and their clients want nothing else. */
static void compress(struct task *task)
{
	struct reply *reply = &task->reply;
	struct blob *packed;
	uint8_t *bytes;
	size_t length;

	if (!task->has_gzip || !reply->body || reply->body->length < GZIP_BYTES_MIN ||
	    strcmp(reply->headers[0].value, REPLY_PROFILE) == 0 ||
	    gzip_encode(reply->body->bytes, reply->body->length, GZIP_LEVEL_FAST, &bytes, &length))
		return;
	packed = blob_new(bytes, length);
	if (!packed)
		return;
	blob_drop(reply->body);
	reply->body = packed;
	reply_header(reply, "Content-Encoding", "gzip");
	reply_header(reply, "Vary", "Accept-Encoding");
}

static void run(struct job *job)
{
	struct task *task = (struct task *)job;

	task->make(task);
	compress(task);
}

static void on_made(struct task *task)
{
	struct request *request = task->request;

	request->task = NULL; /* frees the profiles now, since sending the reply may take long */
	if (task->job.refused) {
		drop_task(task);
		request_refuse(request, 503, "too much to do: try again later");
		return;
	}
	if (task->made)
		task->made(task);
	reply_fini(&request->reply);
	request->reply = task->reply;
	task->reply = (struct reply){0};
	drop_task(task);
	request_finish(request);
}

static void done(struct job *job)
{
	struct task *task = (struct task *)job;

	task->is_submitted = false;
	if (task->request)
		on_made(task);
	else
		drop_task(task);
}

static bool is_foreign(const struct task *task)
{
	for (size_t i = 0; i < task->count; i++)
		if (task->items[i].profile && task->items[i].profile->foreign)
			return true;
	return false;
}

void request_make_reply(struct request *request)
{
	struct task *task = request->task;

	task->job.run = run;
	task->job.done = done;
	task->job.foreign = is_foreign(task);
	task->job.client = request->client.key;
	task->is_submitted = jobs_submit(request->server->jobs, &task->job);
	if (task->is_submitted)
		return;
	request->task = NULL;
	drop_task(task);
	request_refuse(request, 503, "too much to do: try again later");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_work.h"

#include "serve/api_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void api_work_refuse(struct exchange *exchange, unsigned int status, const char *text)
{
	exchange->server->refused += status == 503;
	reply_json_error(&exchange->reply, status, text);
	exchange_finish(exchange);
}

const char *api_work_parameter(const struct exchange *exchange, const char *name)
{
	const char *value = parameters_get(&exchange->route.parameters, name);

	return value && *value ? value : NULL;
}

/* ---- which processes */

size_t api_work_processes(
    struct exchange *exchange, const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX])
{
	size_t count =
	    catalog_choose(exchange->server->catalog, &exchange->route, chosen, EXCHANGE_PROCESSES_MAX);

	if (!count)
		api_work_refuse(exchange, 404, "there is no such process");
	else if (count > 1 && exchange->route.scope == ROUTE_ANY)
		api_work_refuse(exchange, 400, "there are several: choose by id=, pid= or service=");
	else if (count > EXCHANGE_PROCESSES_MAX)
		api_work_refuse(exchange, 413, "too many processes for one answer");
	else
		return count;
	return 0;
}

const struct catalog_process *api_work_process(struct exchange *exchange)
{
	const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX], *owner;
	const char *id = api_work_parameter(exchange, "id");
	size_t count;

	if (id) {
		owner = profile_choice_owner(exchange->server->catalog, id);
		if (!owner)
			api_work_refuse(exchange, 404, "there is no profile of that id, any more");
		return owner;
	}
	count = api_work_processes(exchange, chosen);
	if (count < 2)
		return count ? chosen[0] : NULL;
	api_work_refuse(exchange, 400,
	    exchange->route.scope == ROUTE_PID
	        ? "several processes had this pid: choose by id=, of a profile of it"
	        : "the service has several processes: choose one by pid=");
	return NULL;
}

/* ---- the job */

static void run(struct exchange_work *base)
{
	struct api_work *work = (struct api_work *)base;

	if (work->is_file)
		api_file_make(&base->reply, &work->question);
	else
		api_answer_make(&base->reply, &work->question);
}

static void free_data(struct exchange_work *base)
{
	struct api_work *work = (struct api_work *)base;

	for (size_t i = 0; i < work->question.count; i++)
		blob_drop(work->blobs[i]);
	free(work->query);
	free(work->title);
	free(work->points);
	free(work->owners);
	free(work->members);
}

void api_work_abandon(struct api_work *work)
{
	free_data(&work->base);
	free(work);
}

static struct api_work *work_new(const struct exchange *exchange, const char *title)
{
	struct api_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->query = strdup(exchange->route.query);
	work->title = strdup(title);
	if (!work->query || !work->title) {
		api_work_abandon(work);
		return NULL;
	}
	work->base.run = run;
	work->base.free_data = free_data;
	work->question = (struct api_question){.query = work->query,
	    .title = work->title,
	    .blobs = work->blobs,
	    .columns = work->columns,
	    .ids = work->ids,
	    .process = &work->process};
	return work;
}

bool api_work_prepare(struct exchange *exchange, size_t count, const char *title, struct api_work **work)
{
	*work = work_new(exchange, title);
	if (*work && gather_init(&exchange->last, count) == 0)
		return true;
	if (*work)
		api_work_abandon(*work);
	api_work_refuse(exchange, 500, "out of memory");
	return false;
}

void api_work_series(struct exchange *exchange, const struct catalog_process *process, struct api_work *work,
    size_t most, bool with_now)
{
	struct gather *gather = &exchange->last;

	gather->count += profile_choice_series(process, exchange->server->snapshots,
	    &gather->items[gather->count], &work->ids[gather->count], most - with_now);
	if (with_now && process->listed) {
		gather->items[gather->count].kind = GATHER_NOW;
		gather->items[gather->count].key = process->key;
		snprintf(work->ids[gather->count], sizeof(work->ids[0]), "now-%d", (int)process->key.pid);
		gather->count++;
	}
}

static void on_gathered(struct gather *gather)
{
	struct exchange *exchange = gather->context;
	const struct gather_item *failure = gather_failure(gather);
	struct api_work *work = (struct api_work *)exchange->planned;

	if (failure) {
		api_work_refuse(exchange, gather_status(failure), failure->why);
		return;
	}
	exchange->planned = NULL;
	for (size_t i = 0; i < gather->count; i++)
		work->blobs[i] = blob_hold(gather->items[i].profile);
	work->question.count = gather->count;
	exchange_submit(exchange, &work->base);
}

void api_work_begin(struct exchange *exchange, struct api_work *work)
{
	exchange->planned = &work->base;
	exchange->last.done = on_gathered;
	exchange->last.context = exchange;
	exchange->last.broker = exchange->server->broker;
	exchange->last.snapshots = exchange->server->snapshots;
	gather_begin(&exchange->last);
}

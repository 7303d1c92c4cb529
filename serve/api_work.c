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
	free(work->blobs);
	free(work->columns);
	free(work->profile_owners);
	free(work->profile_ended);
	free(work->gone);
	free(work->ids);
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

static struct api_work *work_new(const struct exchange *exchange, size_t count, const char *title)
{
	struct api_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->query = strdup(exchange->route.query);
	work->title = strdup(title);
	work->blobs = calloc(count, sizeof(*work->blobs));
	work->columns = calloc(count, sizeof(*work->columns));
	work->profile_owners = calloc(count, sizeof(*work->profile_owners));
	work->profile_ended = calloc(count, sizeof(*work->profile_ended));
	work->gone = calloc(count, sizeof(*work->gone));
	work->ids = calloc(count, sizeof(*work->ids));
	if (!work->query || !work->title || !work->blobs || !work->columns || !work->profile_owners ||
	    !work->profile_ended || !work->gone || !work->ids) {
		api_work_abandon(work);
		return NULL;
	}
	work->base.run = run;
	work->base.free_data = free_data;
	work->question = (struct api_question){.query = work->query,
	    .title = work->title,
	    .blobs = work->blobs,
	    .columns = work->columns,
	    .profile_owners = work->profile_owners,
	    .profile_ended = work->profile_ended,
	    .ids = work->ids,
	    .process = &work->process};
	return work;
}

bool api_work_prepare(struct exchange *exchange, size_t count, const char *title, struct api_work **work)
{
	*work = work_new(exchange, count, title);
	if (*work && fetch_init(&exchange->last, count) == 0)
		return true;
	if (*work)
		api_work_abandon(*work);
	api_work_refuse(exchange, 500, "out of memory");
	return false;
}

void api_work_now(
    const struct catalog_process *process, struct fetch_item *item, char id[PROFILE_CHOICE_ID_BYTES])
{
	item->kind = FETCH_NOW;
	item->key = process->key;
	snprintf(id, PROFILE_CHOICE_ID_BYTES, "now-%d", (int)process->key.pid);
}

void api_work_series(struct exchange *exchange, const struct catalog_process *process, struct api_work *work,
    size_t most, bool with_now)
{
	struct fetch *fetch = &exchange->last;

	fetch->count += profile_choice_series(process, exchange->server->snapshots,
	    &fetch->items[fetch->count], &work->ids[fetch->count], most - with_now);
	if (with_now && process->listed) {
		api_work_now(process, &fetch->items[fetch->count], work->ids[fetch->count]);
		fetch->count++;
	}
}

/* Those of owners of whom one is gone are left out. NULL, or why there is no answer. */
static const struct fetch_item *take_profiles(struct api_work *work, const struct fetch *fetch)
{
	const struct fetch_item *failure = fetch_failure_of_sum(fetch);
	bool *gone = work->gone;
	size_t kept = 0;

	if (failure)
		return failure;
	for (size_t i = 0; i < fetch->count; i++)
		gone[work->profile_owners[i]] = gone[work->profile_owners[i]] || fetch->items[i].error;
	for (size_t i = 0; i < fetch->count; i++) {
		if (gone[work->profile_owners[i]])
			continue;
		work->blobs[kept] = blob_hold(fetch->items[i].profile);
		work->columns[kept] = work->columns[i];
		work->profile_owners[kept] = work->profile_owners[i];
		work->profile_ended[kept] = work->profile_ended[i];
		memmove(work->ids[kept++], work->ids[i], sizeof(work->ids[i]));
	}
	work->question.count = kept;
	return kept ? NULL : fetch_failure(fetch);
}

static void on_fetched(struct fetch *fetch)
{
	struct exchange *exchange = fetch->context;
	struct api_work *work = (struct api_work *)exchange->planned;
	const struct fetch_item *failure = take_profiles(work, fetch);

	if (failure) {
		api_work_refuse(exchange, fetch_status(failure), failure->why);
		return;
	}
	exchange->planned = NULL;
	exchange_submit(exchange, &work->base);
}

void api_work_begin(struct exchange *exchange, struct api_work *work)
{
	exchange->planned = &work->base;
	exchange->last.done = on_fetched;
	exchange->last.context = exchange;
	exchange->last.broker = exchange->server->broker;
	exchange->last.snapshots = exchange->server->snapshots;
	fetch_begin(&exchange->last);
}

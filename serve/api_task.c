/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_task.h"

#include "pprof/analysis/filtered_profile.h"
#include "pprof/analysis/late_names.h"
#include "pprof/analysis/merge.h"
#include "pprof/model/profile.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"
#include "serve/api_view.h"
#include "serve/debug_answer.h"

#include <errno.h>
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

void api_task_free_data(struct task *base)
{
	struct api_task *task = (struct api_task *)base;

	free(task->query);
	free(task->title);
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
	request_make_reply(base->request);
}

void *api_task_new(
    struct request *request, size_t bytes, size_t room, const char *title, void (*make)(struct task *task))
{
	struct api_task *task = request_new_task(request, bytes, room);

	if (!task)
		return NULL;
	task->base.make = make;
	task->base.free_data = api_task_free_data;
	task->base.fetched = on_fetched;
	task->query = strdup(request->route.query);
	task->title = strdup(title);
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
	task->base.count += process_profiles_series(
	    process, task->base.request->server->snapshots, api_task_next(task), most);
}

void api_task_begin(struct api_task *task, const char *text_of_none)
{
	if (task->base.count || !text_of_none)
		task_fetch(&task->base, 0, 0);
	else
		request_refuse(task->base.request, 404, text_of_none);
}

/* ---- the answer, in the thread of jobs */

static unsigned int status_of(int err)
{
	switch (err) {
	case -EINVAL:
		return 400;
	case -ENODATA:
		return 404;
	case -EFBIG:
	case -EOVERFLOW:
		return 413;
	default:
		return 500;
	}
}

/* text: one line, or "" for strerror() of the error. */
static void refuse(struct reply *reply, int err, const char *text)
{
	reply_json_error(reply, status_of(err), *text ? text : strerror(-err));
}

int api_task_decode(const struct blob *blob, struct blob_budget *budget, struct profile **profile,
    char *error, size_t error_bytes)
{
	int err = blob_decode(blob, budget, profile);

	if (err == -EBADMSG)
		snprintf(error, error_bytes, "no valid profile");
	if (err == -EFBIG)
		snprintf(error, error_bytes, "the profiles take too much memory");
	return err;
}

static const char *get(const void *context, const char *name)
{
	return parameters_get(context, name);
}

/* error: gets one line if the parameters are wrong. The caller calls parse_fini() in all cases. */
static int parse(const struct api_task *task, struct parameters *parameters, struct api_query *query,
    char *error, size_t error_bytes)
{
	int err;

	*query = (struct api_query){0};
	if (parameters_parse(parameters, task->query))
		return -ENOMEM;
	err = api_query_parse(query, get, parameters, error, error_bytes);
	query->max_bytes = API_TASK_MEMORY_MAX;
	return err;
}

static void parse_fini(struct parameters *parameters, struct api_query *query)
{
	api_query_fini(query);
	parameters_fini(parameters);
}

void api_task_answer_json(struct api_task *task,
    int (*write)(FILE *out, const struct api_task *task, const struct api_query *query, char *error,
        size_t error_bytes))
{
	struct parameters parameters;
	struct api_query query;
	char *text = NULL, error[512] = "";
	size_t length = 0;
	int err = parse(task, &parameters, &query, error, sizeof(error));
	FILE *out = err ? NULL : open_memstream(&text, &length);

	if (out) {
		err = write(out, task, &query, error, sizeof(error));
		if (fclose(out) && !err)
			err = -ENOMEM;
	} else if (!err) {
		err = -ENOMEM;
	}
	if (err) {
		free(text);
		refuse(&task->base.reply, err, error);
	} else {
		reply_bytes(&task->base.reply, 200, REPLY_JSON, blob_new(text, length));
	}
	parse_fini(&parameters, &query);
}

/* ---- a view */

static int write_view(
    FILE *out, const struct api_task *task, const struct api_query *query, char *error, size_t error_bytes)
{
	struct api_input_profile *profiles = calloc(task->base.count + 1, sizeof(*profiles));
	const struct api_input input = {profiles, task->base.count, task->column_count, task->title};
	struct blob_budget budget = {API_TASK_MEMORY_MAX / 2, BLOB_FOREIGN_BYTES};
	int err = profiles ? 0 : -ENOMEM;

	for (size_t i = 0; i < task->base.count && !err; i++) {
		const struct task_item *item = &task->base.items[i];

		profiles[i] = (struct api_input_profile){NULL, item->column, item->owner, item->ended};
		err = api_task_decode(item->profile, &budget, &profiles[i].profile, error, error_bytes);
	}
	if (!err)
		err = api_view_write(out, task->view, query, &input, error, error_bytes);
	for (size_t i = 0; i < task->base.count && profiles; i++)
		profile_free(profiles[i].profile);
	free(profiles);
	return err;
}

void api_task_view(struct task *task)
{
	api_task_answer_json((struct api_task *)task, write_view);
}

/* ---- a file */

#define FILE_NAME       "profile.pb.gz"
#define FILE_MEMORY_MAX ((size_t)512 << 20)

struct file {
	const struct api_task *task;
	const struct parameters *parameters;
	const struct api_query *query;
	struct profile **profiles;
	size_t count;
	char *error;
	size_t error_bytes;
};

static int decode_all(struct file *file)
{
	struct blob_budget budget = {FILE_MEMORY_MAX, BLOB_FOREIGN_BYTES};
	int err = 0;

	file->profiles = calloc(file->task->base.count + 1, sizeof(struct profile *));
	if (!file->profiles)
		return -ENOMEM;
	while (file->count < file->task->base.count && !err) {
		err = api_task_decode(file->task->base.items[file->count].profile, &budget,
		    &file->profiles[file->count], file->error, file->error_bytes);
		file->count += !err;
	}
	return err;
}

/* One profile with the label is enough: a process that has freed everything has no ages. */
static int check_labels(struct file *file)
{
	const char *missing = NULL;

	for (size_t i = 0; i < file->count; i++) {
		missing = filter_missing_label(&file->query->filter, file->profiles[i]);
		if (!missing)
			return 0;
	}
	if (!missing)
		return 0;
	snprintf(file->error, file->error_bytes, "no sample has the label %s; record with --labels %s",
	    missing, missing);
	return -EINVAL;
}

/* Replaces each profile by the part that the filters select. */
static int select_all(struct file *file)
{
	struct late_names names = {0};
	int err = check_labels(file);

	for (size_t i = 0; i < file->count && !err && file->query->filter.thread; i++)
		err = late_names_learn_threads(&names, file->profiles[i]);
	for (size_t i = 0; i < file->count && !err; i++) {
		struct profile *part;

		err = filtered_profile_make(file->profiles[i], &file->query->filter, &names, &part);
		if (err)
			break;
		profile_free(file->profiles[i]);
		file->profiles[i] = part;
	}
	late_names_fini(&names);
	return err;
}

/* A comment, so that nobody takes the part for the state of a process. */
static void describe(struct profile *profile, const struct parameters *parameters)
{
	static const char *const names[] = {"focus", "ignore", "hide", "module", "thread", "size", "age"};
	char text[1024] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = parameters_get(parameters, names[i]);

		if (value && *value)
			text_append(text, sizeof(text), "%s %s=%s",
			    *text ? "" : "merged: what these filters select:", names[i], value);
	}
	utf8_disarm(text, strlen(text));
	profile_add_comment(profile, text);
}

static int make_file(struct file *file, struct blob **blob)
{
	struct profile *sum = NULL;
	const bool whole = api_query_selects_all(file->query);
	size_t culprit;
	int err = decode_all(file);

	if (!err && !whole)
		err = select_all(file);
	if (err)
		return err;
	err = merge_profiles(file->profiles, file->count, false, &sum, &culprit);
	if (err == -ENODATA)
		snprintf(file->error, file->error_bytes, "the profiles have no sample type in common");
	if (err)
		return err;
	if (!whole)
		describe(sum, file->parameters);
	err = profile_error(sum);
	if (!err)
		err = debug_answer_encode(sum, blob);
	profile_free(sum);
	return err;
}

void api_task_file(struct task *base)
{
	const struct api_task *task = (const struct api_task *)base;
	struct parameters parameters;
	struct api_query query;
	char error[512] = "";
	struct file file = {task, &parameters, &query, NULL, 0, error, sizeof(error)};
	struct blob *blob = NULL;
	int err = parse(task, &parameters, &query, error, sizeof(error));

	if (!err && base->count == 1 && api_query_selects_all(&query))
		blob = blob_hold(base->items[0].profile);
	else if (!err)
		err = make_file(&file, &blob);
	if (err)
		refuse(&base->reply, err, error);
	else
		debug_answer_file(&base->reply, FILE_NAME, blob);
	for (size_t i = 0; i < file.count; i++)
		profile_free(file.profiles[i]);
	free(file.profiles);
	parse_fini(&parameters, &query);
}

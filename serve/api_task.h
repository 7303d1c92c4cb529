/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task of an endpoint of /api/v1 that is answered by profiles.
 *
 *     api_task_processes -> api_task_new -> items of the chosen profiles -> api_task_begin -> make()
 *
 * make() runs in the thread of jobs.h, and reads nothing but the task: it is api_task_view(),
 * api_task_file() or the time line's own.
 */
#ifndef SERVE_API_TASK_H
#define SERVE_API_TASK_H

#include "serve/api_query.h"
#include "serve/blob.h"
#include "serve/process_profiles.h"
#include "serve/request.h"

#include <stdio.h>

struct api_view;

#define API_TASK_MEMORY_MAX ((size_t)1 << 30)

struct api_task {
	struct task base;
	char *query, *title;         /* as in the request; title "" for what the profiles say */
	const struct api_view *view; /* of api_task_view() */
	size_t column_count;         /* of api_task_view() */
};

/* ---- in the web process' thread */

/* The processes of pid= or service=, or the one that there is. Returns how many; 0: the request was
 * refused. */
size_t api_task_processes(
    struct request *request, const struct catalog_process *chosen[REQUEST_PROCESSES_MAX]);

/* The one process that pid=, service= or the profile of id= means. NULL: the request was refused. */
const struct catalog_process *api_task_process(struct request *request);

/* Makes the request's task: `bytes` bytes that begin with a struct api_task, with room for so many items.
 * NULL: the request was refused. */
void *api_task_new(
    struct request *request, size_t bytes, size_t room, const char *title, void (*make)(struct task *task));

/* Frees the task's own data: what free_data() is, unless the task has more to free. */
void api_task_free_data(struct task *task);

/* The first item that is not in use. The caller fills it in and counts it. */
struct task_item *api_task_next(struct api_task *task);

/* Appends at most `most` states of a process, by time. */
void api_task_add_series(struct api_task *task, const struct catalog_process *process, size_t most);

/* Sets an item for what a live process has in use now. */
void api_task_set_now(struct task_item *item, const struct catalog_process *process);

/* Fetches the items, and then answers. If there is no item, refuses with 404 and the text; NULL: answers. */
void api_task_begin(struct api_task *task, const char *text_of_none);

/* ---- in the thread of jobs */

/* Answers with the task's view of the profiles. */
void api_task_view(struct task *task);

/* Answers with a profile as a file: the profile itself, the sum of several, or the part that filters select.
 * Without filters the answer to one profile is its file, byte by byte. */
void api_task_file(struct task *task);

/* Decodes a profile within the budget. 0, or -errno with one line in error. */
int api_task_decode(const struct blob *blob, struct blob_budget *budget, struct profile **profile,
    char *error, size_t error_bytes);

/* Reads the task's query, and answers with the JSON that write() makes of it, or with its error. */
void api_task_answer_json(struct api_task *task,
    int (*write)(FILE *out, const struct api_task *task, const struct api_query *query, char *error,
        size_t error_bytes));

#endif

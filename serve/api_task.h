/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task of an endpoint of /api/v1 that is answered by profiles.
 *
 *     api_task_processes -> api_task_new -> items of the chosen profiles -> api_task_begin
 */
#ifndef SERVE_API_TASK_H
#define SERVE_API_TASK_H

#include "serve/api_answer.h"
#include "serve/process_profiles.h"
#include "serve/request.h"

struct api_task {
	struct task base;
	struct api_question question;
	void (*answer)(struct reply *reply, const struct api_question *question); /* of api_answer.h */
	char *query, *title;

	/* Of a time line. The arrays are freed with the task. */
	struct api_process process;
	char program[CATALOG_NAME_BYTES], name[CATALOG_NAME_BYTES], service[CATALOG_NAME_BYTES], host[65],
	    session[64], id[TASK_ID_BYTES];
	struct api_point *points;
	size_t *owners;
	struct timeline_sum_process *members;
};

/* The processes of pid= or service=, or the one that there is. Returns how many; 0: the request was
 * refused. */
size_t api_task_processes(
    struct request *request, const struct catalog_process *chosen[REQUEST_PROCESSES_MAX]);

/* The one process that pid=, service= or the profile of id= means. NULL: the request was refused. */
const struct catalog_process *api_task_process(struct request *request);

/* Makes the request's task, with room for so many items. NULL: the request was refused. */
struct api_task *api_task_new(struct request *request, size_t room, const char *title,
    void (*answer)(struct reply *reply, const struct api_question *question));

/* The first item that is not in use. The caller fills it in and counts it. */
struct task_item *api_task_next(struct api_task *task);

/* Appends at most `most` states of a process, by time. */
void api_task_add_series(struct api_task *task, const struct catalog_process *process, size_t most);

/* Sets an item for what a live process has in use now. */
void api_task_set_now(struct task_item *item, const struct catalog_process *process);

/* Fetches the items, and then answers. If there is no item, refuses with 404 and the text; NULL: answers. */
void api_task_begin(struct api_task *task, const char *text_of_none);

#endif

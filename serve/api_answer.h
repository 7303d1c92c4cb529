/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of /api/v1 that are made of profiles. Pure: for the thread of jobs.h. */
#ifndef SERVE_API_ANSWER_H
#define SERVE_API_ANSWER_H

#include "serve/api_lists.h"
#include "serve/api_view.h"
#include "serve/reply.h"
#include "serve/request.h"
#include "serve/timeline_sum.h"

#define API_ANSWER_MEMORY_MAX ((size_t)1 << 30)

/* Owns nothing. */
struct api_question {
	const char *query;             /* as in the request */
	const char *title;             /* "" for what the profiles say */
	const struct task_item *items; /* the profiles */
	size_t count, column_count;
	const struct api_view *view; /* of api_answer_view */

	/* Of api_answer_timeline. */
	const struct api_process *process;
	const struct api_point *points; /* of moments that no profile is of */
	size_t point_count;
	/* Of a sum over several processes: the number of the process, for each profile its column. */
	const size_t *owners;                       /* of each point */
	const struct timeline_sum_process *members; /* NULL: a time line of one process */
	int64_t from_ns;
};

void api_answer_view(struct reply *reply, const struct api_question *question);
void api_answer_timeline(struct reply *reply, const struct api_question *question);

/* A profile as a file, the sum of several, or the part that filters select. Without filters the answer to one
 * profile is its file, byte by byte. */
void api_answer_file(struct reply *reply, const struct api_question *question);

#endif

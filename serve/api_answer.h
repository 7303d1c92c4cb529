/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request of /api/v1 that is made of profiles. Pure: for the thread of jobs.h. */
#ifndef SERVE_API_ANSWER_H
#define SERVE_API_ANSWER_H

#include "serve/api_list.h"
#include "serve/api_view.h"
#include "serve/blob.h"
#include "serve/reply.h"
#include "serve/timeline_sum.h"

#define API_ANSWER_MEMORY_MAX ((size_t)1 << 30)

enum api_answer_kind { API_ANSWER_VIEW, API_ANSWER_TIMELINE };

/* Owns nothing. */
struct api_question {
	enum api_answer_kind kind;
	enum api_view view;
	const char *query;            /* as in the request */
	const char *title;            /* "" for what the profiles say */
	struct blob **blobs;          /* the profiles */
	const size_t *columns;        /* of each */
	const size_t *profile_owners; /* whose each is: see api_input.h */
	const bool *profile_ended;    /* likewise */
	size_t count, column_count;
	/* of a time line */
	const struct api_process *process;
	const struct api_point *points; /* that no profile is for */
	size_t point_count;
	char (*ids)[64]; /* of each profile */
	/* Of several processes: whose each profile is say the columns, whose each point is `owners`. */
	const size_t *owners;
	const struct timeline_sum_process *members; /* NULL: of one process */
	int64_t from_ns;
};

/* The error of api_view.h as a reply; text "": in the words of the error. */
void api_answer_refuse(struct reply *reply, int err, const char *text);

void api_answer_make(struct reply *reply, const struct api_question *question);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question of /api/v1 from the choice of its profiles to the job that answers it.
 *
 *     api_work_process(es) -> api_work_prepare -> exchange->last.items -> api_work_begin
 */
#ifndef SERVE_API_WORK_H
#define SERVE_API_WORK_H

#include "serve/api_answer.h"
#include "serve/exchange.h"
#include "serve/profile_choice.h"

enum { API_WORK_SERIES_MAX = 48 /* profiles of a process' time line, or of growth */ };

struct api_work {
	struct exchange_work base;
	struct api_question question;
	bool is_file; /* a profile is the answer, no view of it */
	char *query, *title;
	/* Of each profile. Of an owner all are there, or none: it may end meanwhile, and its files go. */
	struct blob **blobs;
	size_t *columns, *profile_owners;
	bool *profile_ended;
	bool *gone; /* by owner */
	char (*ids)[PROFILE_CHOICE_ID_BYTES], id[PROFILE_CHOICE_ID_BYTES];
	/* of a time line; the arrays are freed with it */
	struct api_process process;
	char program[CATALOG_NAME_BYTES], name[CATALOG_NAME_BYTES], service[CATALOG_NAME_BYTES], host[65],
	    session[64];
	struct api_point *points;
	size_t *owners;
	struct timeline_sum_process *members;
};

/* The reply is an error. */
void api_work_refuse(struct exchange *exchange, unsigned int status, const char *text);

/* The value of a parameter; NULL: it is not given, or empty. */
const char *api_work_parameter(const struct exchange *exchange, const char *name);

/* Those of pid= or service=, or the one that there is. 0: a reply was made. */
size_t api_work_processes(
    struct exchange *exchange, const struct catalog_process *chosen[EXCHANGE_PROCESSES_MAX]);

/* The one process that is meant, or whose profile id= is. NULL: a reply was made. */
const struct catalog_process *api_work_process(struct exchange *exchange);

/* With room for so many profiles in exchange->last.items, whose number the caller sets. False: a reply was
 * made. */
bool api_work_prepare(struct exchange *exchange, size_t count, const char *title, struct api_work **work);

/* Appends at most `most` states of a process by time to the items and ids, with the present one at the end if
 * wanted. */
void api_work_series(struct exchange *exchange, const struct catalog_process *process, struct api_work *work,
    size_t most, bool with_now);

/* Sets an item, and its id, for what a live process has now. */
void api_work_now(
    const struct catalog_process *process, struct fetch_item *item, char id[PROFILE_CHOICE_ID_BYTES]);

/* Gathers the items, then answers: it is the exchange's now. Or it is dropped. */
void api_work_begin(struct exchange *exchange, struct api_work *work);
void api_work_abandon(struct api_work *work);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as the views of /api/v1 need them: their traces in columns, what each column is of, and that as
 * JSON. */
#ifndef SERVE_API_FACTS_H
#define SERVE_API_FACTS_H

#include "pprof/analysis/growth.h"
#include "pprof/model/origin.h"
#include "pprof/text/json.h"
#include "serve/api_query.h"

#include <stdbool.h>
#include <stdint.h>

struct profile;

/* Decoded profiles in columns: what an answer is made of. Borrows everything. */
struct api_input {
	const struct api_input_profile {
		struct profile *profile;
		size_t column;
		/* In a view of several moments: the number of the profile's process. The profiles of one
		 * process follow each other by time. */
		size_t owner;
		bool ended; /* the process had ended before the moment: what it had in use counts no longer */
	} * profiles;
	size_t count;
	/* One column; of a difference two, base and new; of growth one for each snapshot, by time. The
	 * profiles of one column are added up. */
	size_t column_count;
	const char *title; /* "" for what the profiles say */
};

struct api_facts {
	struct traces traces;
	struct origin *origins; /* of each column: the origin of its newest profile */
	size_t *process_counts; /* of each column: its profiles, without those of ended processes */
	bool *ended;            /* of each column: all its profiles were written when their processes ended */
	int64_t *rss_bytes;     /* of each column: resident memory of its processes; -1: not known */
	uint32_t gaps;          /* enum origin_gap, of all profiles together */
	bool is_mixed;          /* the profiles are of different programs */
	bool is_series;         /* the profiles of one owner are states of one process, by time */
	const char *title;      /* as given, or the program's name */
	enum measure_kind kind; /* what is shown */
	const struct api_query *query;
};

/* How rows are made. */
struct api_shape {
	enum frames_names names;
	bool fold;     /* repeated frames count once */
	bool headings; /* a row begins at a heading */
	bool split;    /* there are rows for each thread and age */
};

/* Returns what api_view_write() returns. The caller calls api_facts_fini() in all cases. */
int api_facts_make(struct api_facts *facts, const struct api_query *query, const struct api_input *input,
    const struct api_shape *shape, char *error, size_t error_bytes);
void api_facts_fini(struct api_facts *facts);

/* Are both columns states of one process, or sums of states of the same processes, in the order of time? */
bool api_facts_same_process(const struct api_facts *facts, size_t first, size_t second);

/* The origin of a column. A column of several processes has no pid and no cause. */
struct origin api_facts_origin(const struct api_facts *facts, size_t column);

/* "4 processes: python3.12 (4)"; if the programs have several names, "4 processes of gunicorn".
 * Returns text. */
const char *api_facts_several(const struct api_facts *facts, size_t column, char *text, size_t text_bytes);

/* Writes the member "answer": what the column holds, and what is not seen. If `growth` is given, also what
 * grows over all columns. 0 or -ENOMEM. */
int api_facts_answer(
    struct json *json, const struct api_facts *facts, size_t column, const struct growth *growth);

/* Write members of the open object: what a column is of; the kind that is shown, its unit, and all kinds. */
void api_facts_head(struct json *json, const struct api_facts *facts, size_t column);
void api_facts_kind(struct json *json, const struct api_facts *facts);

/* Are errors known of this kind? */
bool api_facts_known(const struct api_facts *facts);

/* Writes "NAME" with "NAME_error" and "NAME_samples"; for "flat" only "error" and "samples". */
void api_facts_sum(struct json *json, const struct api_facts *facts, const char *name, double value,
    struct traces_doubt doubt);

/* A change of one row by itself is called beyond chance at two standard errors (as in
 * pprof/page/graph.js). */
#define API_CHANCE_ERRORS 2.0

/* A profile as a point of a time line. */
struct api_point {
	int64_t time_ns;
	double value, error, samples; /* of what the query selects; without a query, of what is in use */
	bool known;                   /* error and samples are known */
	double allocated;             /* bytes since the recording began; NaN: not known */
	int64_t rss_bytes;            /* -1: not known */
	char id[64], cause[96];       /* of the profile; the caller fills in the id */
	/* Of a sum (api_lists.h): the processes in it, and those that it lacks. */
	size_t processes, missing;
};

/* 0, -ENODATA (no such values), -EINVAL (a label is missing), -ENOMEM, -EFBIG. */
int api_facts_point(struct api_point *point, struct profile *profile, const struct api_query *query);

#endif

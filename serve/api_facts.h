/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as the views have them: traces in columns, what each column is of, and that as JSON. */
#ifndef SERVE_API_FACTS_H
#define SERVE_API_FACTS_H

#include "pprof/analysis/growth.h"
#include "pprof/profile/origin.h"
#include "pprof/text/json.h"
#include "serve/api_query.h"

/* Decoded profiles in columns: what an answer is made of. Borrows everything. */
struct api_input {
	const struct api_input_profile {
		struct profile *profile;
		size_t column;
		/* Of a view of several moments: the number of the profile's process. The profiles of one
		 * process follow each other by time. */
		size_t owner;
		bool ended; /* the process had ended before the moment: what it had in use counts no longer */
	} * profiles;
	size_t count;
	/* One; of a difference two, base and new; of growth one for each snapshot, by time. Several profiles
	 * in one column are added up. */
	size_t column_count;
	const char *title; /* "" for what the profiles say */
};

struct api_facts {
	struct traces traces;
	struct origin *origins; /* of each column, its newest profile's */
	size_t *process_counts; /* profiles in each column */
	bool *ended;            /* of each column: all of them were written when their process ended */
	int64_t *rss_bytes;     /* of each column: resident memory of its processes, -1 unknown */
	uint32_t gaps;          /* enum origin_gap, of any */
	bool is_mixed;          /* they are of different programs */
	bool is_series;         /* those of one owner are states of one process, by time */
	const char *title;      /* as given, or the program's name */
	enum measure_kind kind; /* what is shown */
	const struct api_query *query;
};

/* How frames are named and rows are made: names of frames, whether repeated frames count once and rows
 * begin at a heading, whether rows are split by thread and age. */
struct api_shape {
	enum frames_names names;
	bool fold, headings, split;
};

/* As api_view_write(); the caller ends it with api_facts_fini() in all cases. */
int api_facts_make(struct api_facts *facts, const struct api_query *query, const struct api_input *input,
    const struct api_shape *shape, char *error, size_t error_bytes);
void api_facts_fini(struct api_facts *facts);

/* Are both columns states of one process, or sums of states of the same ones, in the order of time? */
bool api_facts_same_process(const struct api_facts *facts, size_t first, size_t second);

/* Of several processes without what holds of one alone: pid, cause. */
struct origin api_facts_origin(const struct api_facts *facts, size_t column);

/* "4 processes: python3.12 (4)", or of programs of several names "4 processes of gunicorn". Returns text. */
const char *api_facts_several(const struct api_facts *facts, size_t column, char *text, size_t text_bytes);

/* The member "answer": what is held in the column, what is not seen, and if `growth` is given what grows over
 * all columns. 0 or -ENOMEM. */
int api_facts_answer(
    struct json *json, const struct api_facts *facts, size_t column, const struct growth *growth);

/* Members of the open object: what a column is of; the kind, its unit, and which there are. */
void api_facts_head(struct json *json, const struct api_facts *facts, size_t column);
void api_facts_kind(struct json *json, const struct api_facts *facts);

/* Are errors known of this kind? */
bool api_facts_known(const struct api_facts *facts);

/* "NAME" with "NAME_error" and "NAME_samples"; of "flat" just "error" and "samples". */
void api_facts_sum(struct json *json, const struct api_facts *facts, const char *name, double value,
    struct traces_doubt doubt);

/* What a change is called beyond chance at: two standard errors, one row by itself (pprof/page/graph.js). */
#define API_CHANCE_ERRORS 2.0

#endif

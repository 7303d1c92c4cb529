/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request of /api/v1 wants to see: its parameters are the filters of `heaptap report`, by the same
 * names. Pure: anybody may send any text.
 */
#ifndef SERVE_API_QUERY_H
#define SERVE_API_QUERY_H

#include "pprof/analysis/filter.h"
#include "pprof/analysis/grouping.h"
#include "pprof/analysis/traces.h"

#include <stdbool.h>
#include <stddef.h>

struct api_query {
	struct filter filter;
	bool sorted;            /* `kind` was given */
	enum measure_kind kind; /* sort= */
	enum grouping by;
	size_t rows; /* 0: all */
	bool cum, inverted, normalize, lines, full_names, all_frames;
	bool columns;                    /* layout=columns: as the page reads it (pprof/export/graph.h) */
	unsigned int threshold_permille; /* smaller nodes of a tree are left out */
	size_t max_bytes;                /* of memory that the answer may take; set by the caller */
};

/* Returns the value of a parameter, or NULL if it is not given. The value lives until api_query_fini(). */
typedef const char *api_query_get(const void *context, const char *name);

/* 0; -EINVAL with one line in error that says what is allowed; -ENOMEM. The caller calls api_query_fini() in
 * all cases. */
int api_query_parse(
    struct api_query *query, api_query_get *get, const void *context, char *error, size_t error_bytes);
void api_query_fini(struct api_query *query);

/* Is no filter set? */
bool api_query_selects_all(const struct api_query *query);

/* Is neither a filter nor another type set? Then what was computed for one request holds for others. */
bool api_query_is_plain(const struct api_query *query);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The views of /api/v1 on profiles: top, tree, diff, growth, leaks. Decoded profiles in, JSON out; the
 * numbers are those of `heaptap report` and `heaptap diff` with the same options.
 */
#ifndef SERVE_API_VIEW_H
#define SERVE_API_VIEW_H

#include "serve/api_input.h"
#include "serve/api_query.h"

#include <stdio.h>

enum api_view { API_TOP, API_TREE, API_DIFF, API_GROWTH, API_LEAKS };

/* "top"; -EINVAL if there is no such view. */
int api_view_find(const char *name, enum api_view *view);

/*
 * 0, or -errno with one line in error: -EINVAL for a query that these profiles cannot answer, -ENODATA for
 * profiles without such values or without sample types in common, -ENOMEM, -EFBIG (beyond the query's
 * max_bytes), -EOVERFLOW. On failure nothing that was written to `out` is of use.
 */
int api_view_write(FILE *out, enum api_view view, const struct api_query *query,
    const struct api_input *input, char *error, size_t error_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The views of /api/v1 on profiles: top, tree, diff, growth, leaks. They take decoded profiles and write
 * JSON. The numbers are those of `heaptap report` and `heaptap diff` with the same options.
 */
#ifndef SERVE_API_VIEW_H
#define SERVE_API_VIEW_H

#include "serve/api_facts.h"
#include "serve/api_query.h"

#include <stdio.h>

struct api_view;

/* By its name, "top"; NULL if there is no such view. */
const struct api_view *api_view_find(const char *name);

/*
 * 0, or -errno with one line in error: -EINVAL for a query that these profiles cannot answer, -ENODATA for
 * profiles without such values or without sample types in common, -ENOMEM, -EFBIG (beyond the query's
 * max_bytes), -EOVERFLOW. On failure nothing that was written to `out` is of use.
 */
int api_view_write(FILE *out, const struct api_view *view, const struct api_query *query,
    const struct api_input *input, char *error, size_t error_bytes);

#endif

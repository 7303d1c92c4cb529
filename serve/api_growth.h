/* SPDX-License-Identifier: Apache-2.0 */
/* The states of several processes at common moments: /api/v1/growth, and the other views of a service at a
 * moment of its time line. */
#ifndef SERVE_API_GROWTH_H
#define SERVE_API_GROWTH_H

#include "serve/api_view.h"

#include <stdint.h>

struct request;

/* Reads "at-NANOSECONDS", as the time line of a service has it, or "now". False: the id has neither form. */
bool api_growth_moment(const char *id, int64_t *moment_ns);

/* Answers with one column a moment: the states of all processes that the route means, added up. */
void api_growth_answer_at(
    struct request *request, const struct api_view *view, const int64_t *moments_ns, size_t moment_count);

#endif

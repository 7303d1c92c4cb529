/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the endpoint of a request in the table (endpoint_list.h), and lets it answer. */
#ifndef SERVE_ENDPOINT_H
#define SERVE_ENDPOINT_H

#include "serve/request.h"

/* Never NULL: a path that leads nowhere has an endpoint that says so. */
const struct endpoint *endpoint_find(const struct route *route);

/* All rows of the table, for tests. */
const struct endpoint *endpoint_all(size_t *count);

/* The description of /api/v1 for programs and their generators: openapi.json of this folder (OpenAPI 3.0). */
const char *endpoint_openapi(void);

/* Asks the broker for what the request's endpoint needs, and then calls its answer(). request->finished() is
 * called once, from here or later. */
void endpoint_begin(struct request *request);

#endif

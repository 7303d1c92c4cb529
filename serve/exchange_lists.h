/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of /api/v1, from the catalog to the plain structs that api_list.h writes. */
#ifndef SERVE_EXCHANGE_LISTS_H
#define SERVE_EXCHANGE_LISTS_H

#include "serve/api_list.h"
#include "serve/catalog.h"
#include "serve/profile_choice.h"
#include "serve/reply.h"

struct exchange;

/* /api/v1/processes and /api/v1/profiles: makes the reply. */
void exchange_lists(struct exchange *exchange);

/* What lists have said of a process over time, and (with files) what its files say, by time; `most` of
 * them, 0:
 * all. The caller frees them. NULL: there are none, or no memory. */
struct api_point *exchange_lists_points(const struct catalog_process *process, size_t *count, size_t most);

/* The id of its newest state; of one that runs, as it is when that is asked for. "": there is none. */
void exchange_lists_id(const struct catalog_process *process, char id[PROFILE_CHOICE_ID_BYTES]);

/* {"path": ...} */
void exchange_lists_written(struct reply *reply, const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What grows, as `heaptap report --json` and /api/v1/growth have it. */
#ifndef PPROF_EXPORT_GROWTH_JSON_H
#define PPROF_EXPORT_GROWTH_JSON_H

#include "pprof/analysis/growth.h"
#include "pprof/text/json.h"

/* Members of the open object: what a row says of its rise. */
void growth_json_trend(struct json *json, const struct growth_row *row);

/* The member `name`: an array of at most `most` rows (0: all). Each has the stack that rose most of those
 * that it is the sum of. */
void growth_json_rows(
    struct json *json, const char *name, const struct traces *t, const struct growth *growth, size_t most);

#endif

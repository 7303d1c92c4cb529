/* SPDX-License-Identifier: Apache-2.0 */
/* What traces hold, as JSON: frames, stacks, and which functions grow. */
#ifndef PPROF_EXPORT_TRACES_JSON_H
#define PPROF_EXPORT_TRACES_JSON_H

#include "pprof/analysis/growth.h"
#include "pprof/analysis/traces.h"
#include "pprof/text/json.h"

/* An object with name, label if the frame has a shorter one, file, line and module; the caller may add
 * members, and ends it. */
void traces_json_frame(struct json *json, const struct traces *t, uint32_t frame);

/* The stack of a row, leaf first, as the member "stack". */
void traces_json_stack(struct json *json, const struct traces *t, size_t row);

/* Members of the open object: what a row says of its rise. */
void traces_json_trend(struct json *json, const struct growth_row *row);

/* The member `name`: an array of at most `most` rows (0: all). Each has the stack that rose most of those
 * that it is the sum of. */
void traces_json_growth(
    struct json *json, const char *name, const struct traces *t, const struct growth *growth, size_t most);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and stacks of traces as JSON: what reports and the API of `heaptap serve` have in common. */
#ifndef PPROF_EXPORT_STACK_JSON_H
#define PPROF_EXPORT_STACK_JSON_H

#include "pprof/analysis/traces.h"
#include "pprof/text/json.h"

/* An object with name, label if the frame has a shorter one, file, line and module; the caller may add
 * members, and ends it. */
void stack_json_frame(struct json *json, const struct traces *t, uint32_t frame);

/* The stack of a row, leaf first, as the member "stack". */
void stack_json(struct json *json, const struct traces *t, size_t row);

#endif

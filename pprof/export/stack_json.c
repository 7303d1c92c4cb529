/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/export/stack_json.h"

void stack_json_frame(struct json *json, const struct traces *t, uint32_t number)
{
	const struct frames_row *frame = &t->frames.rows[number];

	json_object(json, NULL);
	json_text(json, "name", frame->name);
	if (frame->label != frame->name)
		json_text(json, "label", frame->label);
	json_text(json, "file", frame->file);
	if (frame->line > 0)
		json_integer(json, "line", frame->line);
	json_text(json, "module", frame->module);
}

void stack_json(struct json *json, const struct traces *t, size_t row)
{
	const uint32_t *stack = traces_stack(t, row);

	json_array(json, "stack");
	for (uint32_t i = 0; i < t->rows[row].depth; i++) {
		stack_json_frame(json, t, stack[i]);
		json_end(json);
	}
	json_end(json);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/row_label.h"

#include <errno.h>
#include <stdlib.h>

/* What calls a frame: nothing yet, one function, several. */
enum { NO_CALLER = UINT32_MAX, SEVERAL_CALLERS = UINT32_MAX - 1 };

static void find_callers(uint32_t *caller, const struct traces *t)
{
	for (uint32_t i = 0; i < t->frames.count; i++)
		caller[i] = NO_CALLER;
	for (size_t row = 0; row < t->row_count; row++) {
		const uint32_t *stack = traces_stack(t, row);

		for (uint32_t i = 0; i + 1 < t->rows[row].depth; i++) {
			uint32_t *old = &caller[stack[i]];

			if (stack[i + 1] != stack[i] && *old != stack[i + 1])
				*old = *old == NO_CALLER ? stack[i + 1] : SEVERAL_CALLERS;
		}
	}
}

/* The frame's role here; FRAME_ALLOCATES is not among the answers. */
static enum frame_role role_of(const struct traces *t, const uint32_t *caller, uint32_t frame)
{
	enum frame_role role = (enum frame_role)t->frames.rows[frame].role;

	if (role != FRAME_ALLOCATES)
		return role;
	return caller[frame] == SEVERAL_CALLERS ? FRAME_ALLOCATOR : FRAME_OWN;
}

/* Place of the first frame with the role, depth if there is none. */
static uint32_t first_with(const struct traces *t, const uint32_t *caller, size_t row, enum frame_role role)
{
	const uint32_t *stack = traces_stack(t, row);
	uint32_t i = 0;

	while (i < t->rows[row].depth && role_of(t, caller, stack[i]) != role)
		i++;
	return i;
}

/* Which callee to show: what own code called; of an interpreter, its innermost function that is no allocator,
 * since each script is called in the same way. */
static uint32_t choose_through(const struct traces *t, const uint32_t *caller, size_t row, uint32_t head)
{
	const uint32_t *stack = traces_stack(t, row);
	enum frame_role of_head = role_of(t, caller, stack[head]);
	bool script = of_head == FRAME_SCRIPT || of_head == FRAME_SCRIPT_LIBRARY;

	for (uint32_t i = 0; i < head; i++) {
		uint32_t at = script ? i : head - 1 - i;
		enum frame_role role = role_of(t, caller, stack[at]);

		if (role != FRAME_UNNAMED && role != FRAME_UNNAMED_OWN &&
		    !(script && role == FRAME_ALLOCATOR))
			return at;
	}
	return head ? head - 1 : 0;
}

int row_label_choose(struct traces *t)
{
	static const enum frame_role wanted[] = {
	    FRAME_SCRIPT, FRAME_SCRIPT_LIBRARY, FRAME_OWN, FRAME_UNNAMED_OWN, FRAME_LIBRARY};
	uint32_t *caller = calloc((size_t)t->frames.count + 1, sizeof(*caller));

	if (!caller)
		return -ENOMEM;
	find_callers(caller, t);
	for (size_t row = 0; row < t->row_count; row++) {
		struct traces_row *r = &t->rows[row];

		r->head = r->through = 0;
		for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted) && r->depth; i++) {
			uint32_t place = first_with(t, caller, row, wanted[i]);

			if (place == r->depth)
				continue;
			r->head = place;
			r->through = choose_through(t, caller, row, place);
			break;
		}
	}
	free(caller);
	return 0;
}

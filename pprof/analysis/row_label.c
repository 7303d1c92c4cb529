/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/row_label.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
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

/* ---- the callers of a function that names rows */

#define LEAST_SHARE (1.0 / 3)

/* The rows that are about the function, and with stacks that go on with the callers chosen so far. */
struct choice {
	const struct traces *traces;
	const double *values;
	uint32_t *rows;
	size_t count;
	double *sums; /* by frame; all zero between calls of choose_caller() */
	bool script;  /* the function is a script's */
};

static enum frame_role noted_role(const struct choice *c, uint32_t frame)
{
	return (enum frame_role)c->traces->frames.rows[frame].role;
}

static bool is_script(const struct choice *c, uint32_t frame)
{
	return noted_role(c, frame) == FRAME_SCRIPT || noted_role(c, frame) == FRAME_SCRIPT_LIBRARY;
}

/* The caller so many places outwards from the row's head; false: the stack ends before. */
static bool frame_at(const struct choice *c, uint32_t row, size_t outwards, uint32_t *frame)
{
	const struct traces_row *r = &c->traces->rows[row];
	const uint32_t *stack = traces_stack(c->traces, row);

	for (uint32_t i = r->head + 1; i < r->depth; i++)
		if ((!c->script || is_script(c, stack[i])) && --outwards == 0) {
			*frame = stack[i];
			return true;
		}
	return false;
}

/* Returns the caller at `depth` with the largest sum, and keeps only its rows. */
static uint32_t choose_caller(struct choice *c, size_t depth, double *sum)
{
	uint32_t frame;
	uint32_t largest = 0;
	size_t kept = 0;

	*sum = 0;
	for (size_t i = 0; i < c->count; i++)
		if (frame_at(c, c->rows[i], depth, &frame))
			c->rows[kept++] = c->rows[i];
	c->count = kept;
	for (size_t i = 0; i < c->count; i++)
		if (frame_at(c, c->rows[i], depth, &frame))
			c->sums[frame] += c->values[c->rows[i]];
	for (size_t i = 0; i < c->count && frame_at(c, c->rows[i], depth, &frame); i++) {
		if (fabs(c->sums[frame]) > fabs(*sum)) {
			*sum = c->sums[frame];
			largest = frame;
		}
		c->sums[frame] = 0;
	}
	kept = 0;
	for (size_t i = 0; i < c->count; i++)
		if (frame_at(c, c->rows[i], depth, &frame) && frame == largest)
			c->rows[kept++] = c->rows[i];
	c->count = kept;
	return largest;
}

/* Where in the row's stack is what the function called; false: it called nothing. */
typedef bool callee_fn(const struct choice *c, uint32_t row, uint32_t *frame);

static bool through_of(const struct choice *c, uint32_t row, uint32_t *frame)
{
	*frame = traces_stack(c->traces, row)[c->traces->rows[row].through];
	return c->traces->rows[row].head > 0;
}

/* The outermost function of a script's library inside of the user's own. */
static bool library_of(const struct choice *c, uint32_t row, uint32_t *frame)
{
	const uint32_t *stack = traces_stack(c->traces, row), head = c->traces->rows[row].head;

	for (uint32_t i = head; i-- > 0 && noted_role(c, stack[head]) == FRAME_SCRIPT;)
		if (noted_role(c, stack[i]) == FRAME_SCRIPT_LIBRARY) {
			*frame = stack[i];
			return true;
		}
	return false;
}

/* What the function mostly calls, and its share; 0: nothing, or many. */
static double choose_callee(const struct choice *c, double all, callee_fn *callee, uint32_t *chosen)
{
	double most = 0;
	uint32_t frame;

	for (size_t i = 0; i < c->count; i++)
		if (callee(c, c->rows[i], &frame))
			c->sums[frame] += c->values[c->rows[i]];
	for (size_t i = 0; i < c->count; i++) {
		if (!callee(c, c->rows[i], &frame))
			continue;
		if (fabs(c->sums[frame]) > fabs(most)) {
			most = c->sums[frame];
			*chosen = frame;
		}
		c->sums[frame] = 0;
	}
	return most / all >= LEAST_SHARE ? most / all : 0;
}

int callers_find(struct callers *callers, const struct traces *t, const double *values, uint32_t function)
{
	struct choice c = {t, values, malloc(((size_t)t->row_count + 1) * sizeof(uint32_t)), 0,
	    calloc((size_t)t->frames.count + 1, sizeof(double)), false};
	double all = 0, sum;
	int err = c.rows && c.sums ? 0 : -ENOMEM;

	*callers = (struct callers){0};
	c.script = function < t->frames.count && is_script(&c, function);
	for (uint32_t row = 0; row < t->row_count && !err; row++) {
		if (!t->rows[row].depth || traces_stack(t, row)[t->rows[row].head] != function)
			continue;
		all += values[row];
		c.rows[c.count++] = row;
	}
	if (!err && all != 0) {
		callers->through_share = choose_callee(&c, all, through_of, &callers->through);
		callers->library_share = choose_callee(&c, all, library_of, &callers->library);
	}
	while (callers->count < CALLERS_MOST && !err && all != 0) {
		uint32_t caller = choose_caller(&c, callers->count + 1, &sum);

		if (!(sum / all >= LEAST_SHARE))
			break;
		callers->shares[callers->count] = sum / all;
		callers->frames[callers->count++] = caller;
	}
	free(c.rows);
	free(c.sums);
	return err;
}

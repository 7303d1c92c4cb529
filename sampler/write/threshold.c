/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/threshold.h"

#include <stddef.h>

const char *const threshold_names[] = {[THRESHOLD_RSS] = "rss",
    [THRESHOLD_INUSE] = "inuse",
    [THRESHOLD_ALLOC] = "alloc",
    [THRESHOLD_MEMORY_HIGH] = "memory.high",
    NULL};

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* How far the value must fall below a level before it can be crossed again: a tenth of the level, or two
 * standard errors if that is more, but at most half of the level. */
static uint64_t margin(const struct threshold *threshold, const struct threshold_reading *reading)
{
	uint64_t part = threshold->bytes / 10, most = threshold->bytes / 2;
	uint64_t doubt = sum(reading->error_bytes, reading->error_bytes);
	uint64_t wanted = doubt > part ? doubt : part;

	return wanted < most ? wanted : most;
}

void threshold_begin(const struct threshold *threshold, struct threshold_state *state,
    const struct threshold_reading *reading, bool fresh)
{
	*state = (struct threshold_state){0};
	if (fresh)
		return;
	state->base_bytes = state->mark_bytes = reading->bytes;
	state->above = reading->bytes >= threshold->bytes;
}

/* A level is crossed, too, if the value reached it and fell again since the last reading. */
static bool reaches_level(
    const struct threshold *threshold, struct threshold_state *state, const struct threshold_reading *reading)
{
	bool below = reading->bytes < threshold->bytes - margin(threshold, reading);
	bool crossed = !state->above && reading->highest_bytes >= threshold->bytes;

	state->above = (state->above || crossed) && !below;
	return crossed;
}

bool threshold_cross(
    struct threshold_state *state, bool crossed, bool still, uint64_t now_ns, uint64_t limit_ns)
{
	state->waiting += crossed;
	if (!state->waiting || now_ns < state->next_ns)
		return false;
	bool due = crossed || still;
	state->suppressed += state->waiting - due;
	state->waiting = 0;
	if (due)
		state->next_ns = sum(now_ns, limit_ns);
	return due;
}

bool threshold_look(const struct threshold *threshold, struct threshold_state *state,
    const struct threshold_reading *reading, uint64_t now_ns, uint64_t limit_ns)
{
	if (!threshold->growth) {
		bool crossed = reaches_level(threshold, state, reading);

		return threshold_cross(state, crossed, reading->bytes >= threshold->bytes, now_ns, limit_ns);
	}
	bool crossed = reading->highest_bytes >= sum(state->mark_bytes, threshold->bytes);
	bool still = reading->bytes >= sum(state->base_bytes, threshold->bytes);
	if (crossed)
		state->mark_bytes = reading->bytes;
	bool due = threshold_cross(state, crossed, still, now_ns, limit_ns);
	if (due)
		state->base_bytes = reading->bytes;
	if (!state->waiting) /* else a suppressed crossing would hide the growth that follows */
		state->mark_bytes = state->base_bytes;
	return due;
}

uint64_t threshold_distance(const struct threshold *threshold, const struct threshold_state *state,
    const struct threshold_reading *reading)
{
	uint64_t at = threshold->growth ? sum(state->mark_bytes, threshold->bytes)
	    : state->above              ? threshold->bytes - margin(threshold, reading)
	                                : threshold->bytes;

	return at > reading->bytes ? at - reading->bytes : reading->bytes - at;
}

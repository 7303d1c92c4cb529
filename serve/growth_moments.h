/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth of several processes together is that of those which are there at the end, between moments at which
 * the state of each is known:
 *
 *     process    state        state        now
 *     process             state   state    now        began between, and had nothing before
 *     moments    first        middle       last
 *
 * A process that ended between has given its memory back. Pure.
 */
#ifndef SERVE_GROWTH_MOMENTS_H
#define SERVE_GROWTH_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROWTH_MOMENTS = 3, GROWTH_MOMENTS_NO_STATE = -1 };

struct growth_moments_process {
	int64_t start_ns;        /* since 1970; 0: not known */
	const int64_t *times_ns; /* of its states, in their order; one at least */
	size_t count;
	bool runs; /* the last of them is what it has now */
	bool over; /* the last of them is that of its end */
	bool left; /* filled in: it is not there at the end */
};

struct growth_moments {
	int64_t
	    times_ns[GROWTH_MOMENTS]; /* first, middle, last; of fewer what there are, the last for sure */
	size_t count;
};

void growth_moments_choose(
    struct growth_moments *moments, struct growth_moments_process *processes, size_t count);

/* Which of its states is that of a moment: the nearest. GROWTH_MOMENTS_NO_STATE: it had not begun. */
int growth_moments_state(const struct growth_moments_process *process, int64_t time_ns);

#endif

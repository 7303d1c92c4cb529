/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit on work that somebody else causes: so many units at once, and so many more in each step of time. A
 * unit is whatever the caller counts: a line, a descriptor, a nanosecond of CPU time. Pure.
 *
 * Work whose cost is known beforehand asks first and then spends one unit. Work whose cost is known only
 * afterwards (a reading of /proc) is begun while anything is left; it may leave a debt, which time pays off.
 * With a rate of one nanosecond in 20 such work takes a twentieth of a processor.
 */
#ifndef PPROF_TEXT_THROTTLE_H
#define PPROF_TEXT_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

/* After each step_ns a throttle gets `units` more, up to `burst`. */
struct throttle_rate {
	int64_t burst, units;
	uint64_t step_ns;
};

/* All zero: never used, and full. The caller passes the same rate and the same monotonic clock to each
 * function. */
struct throttle {
	int64_t left;       /* units; negative: a debt */
	uint64_t filled_ns; /* the time up to which units have been added */
};

/* Adds the units of the time that has passed. */
void throttle_fill(struct throttle *throttle, const struct throttle_rate *rate, uint64_t now_ns);

/* Is anything left now? */
bool throttle_allows(struct throttle *throttle, const struct throttle_rate *rate, uint64_t now_ns);

/* Of a throttle that has been filled or asked before. */
void throttle_spend(struct throttle *throttle, uint64_t units);

/* Asks, and spends one unit if that is allowed. */
bool throttle_take(struct throttle *throttle, const struct throttle_rate *rate, uint64_t now_ns);

#endif

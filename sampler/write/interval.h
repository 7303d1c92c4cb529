/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the periodic snapshots of a process are due, by the time for which it has been sampled: at each
 * interval. If the user gave no interval, they are due after 5, 10, 20 and 40 s, and then each minute. It
 * takes four moments to say what grows (pprof/analysis/trend.h), so a recording of a minute can say it. Pure.
 */
#ifndef SAMPLER_WRITE_INTERVAL_H
#define SAMPLER_WRITE_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERVAL_USUAL    UINT64_MAX /* in place of an interval: the user gave none */
#define INTERVAL_USUAL_NS (UINT64_C(60) * 1000000000)

/* The clock of one process. */
struct interval_clock {
	uint64_t begin_ns;    /* when sampling of the process began; all times are monotonic */
	uint64_t interval_ns; /* the interval by which due_ns was computed */
	uint64_t due_ns;      /* of the next snapshot; UINT64_MAX: never */
	uint64_t skipped; /* snapshots whose time passed while the writer was busy, or everything was off */
};

/* Starts the clock. Returns how many snapshots were due until now_ns, which an earlier sampler has taken. */
uint64_t interval_clock_begin(
    struct interval_clock *periodic, uint64_t begin_ns, uint64_t interval_ns, uint64_t now_ns);

/* Is a snapshot due? An interval that has changed holds from now on. */
bool interval_clock_look(struct interval_clock *periodic, uint64_t interval_ns, uint64_t now_ns);

/* The snapshot that is due was taken, or is not needed. */
void interval_clock_advance(struct interval_clock *periodic, uint64_t interval_ns, uint64_t now_ns);

/* The age at which a snapshot is due, by its number from 1. UINT64_MAX if never. */
uint64_t interval_due_ns(uint64_t interval_ns, uint64_t number);

/* How many snapshots are due up to that age. */
uint64_t interval_count(uint64_t interval_ns, uint64_t age_ns);

/* Is a snapshot that is due at that age an early one, before the first minute is over? */
bool interval_is_early(uint64_t interval_ns, uint64_t age_ns);

/* The cause of a snapshot that is due at that age: "every 60 s", "after 5 s". */
void interval_describe(uint64_t interval_ns, uint64_t age_ns, char *text, size_t text_bytes);

#endif

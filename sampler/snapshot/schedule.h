/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the periodic snapshots of a process are due, by how long it has been sampled: every interval. Where
 * nobody asked for an interval, each minute, and before that after 5, 10, 20 and 40 s: four moments are what
 * it takes to say what grows (pprof/analysis/trend.h), so a recording of a minute can say it. Pure.
 */
#ifndef SAMPLER_SNAPSHOT_SCHEDULE_H
#define SAMPLER_SNAPSHOT_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHEDULE_USUAL    UINT64_MAX /* in place of an interval: nobody asked for one */
#define SCHEDULE_USUAL_NS (UINT64_C(60) * 1000000000)

/* The clock of one process. */
struct schedule {
	uint64_t begin_ns;    /* since when the process is sampled; all times are monotonic */
	uint64_t interval_ns; /* by which due_ns was reckoned */
	uint64_t due_ns;      /* of the next snapshot; UINT64_MAX: never */
	uint64_t skipped; /* snapshots whose time passed while the writer was busy, or everything was off */
};

/* Returns how many snapshots were due until now_ns: an earlier sampler has taken them. */
uint64_t schedule_begin(struct schedule *schedule, uint64_t begin_ns, uint64_t interval_ns, uint64_t now_ns);

/* Is a snapshot due? An interval that has changed holds from now on. */
bool schedule_look(struct schedule *schedule, uint64_t interval_ns, uint64_t now_ns);

/* The snapshot that is due was taken, or is not needed. */
void schedule_advance(struct schedule *schedule, uint64_t interval_ns, uint64_t now_ns);

/* The age at which that one is due, from 1; UINT64_MAX: never. */
uint64_t schedule_due_ns(uint64_t interval_ns, uint64_t number);

/* How many are due up to that age. */
uint64_t schedule_count(uint64_t interval_ns, uint64_t age_ns);

/* Is one that is due at that age one of the first, which come early? */
bool schedule_is_early(uint64_t interval_ns, uint64_t age_ns);

/* Why one is due at that age: "every 60 s", "after 5 s". */
void schedule_describe(uint64_t interval_ns, uint64_t age_ns, char *text, size_t text_bytes);

#endif

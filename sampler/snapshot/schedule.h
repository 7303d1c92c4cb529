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

/* The age at which that one is due, from 1; UINT64_MAX: never. */
uint64_t schedule_due_ns(uint64_t interval_ns, uint64_t number);

/* How many are due up to that age. */
uint64_t schedule_count(uint64_t interval_ns, uint64_t age_ns);

/* Is one that is due at that age one of the first, which come early? */
bool schedule_is_early(uint64_t interval_ns, uint64_t age_ns);

/* Why one is due at that age: "every 60 s", "after 5 s". */
void schedule_describe(uint64_t interval_ns, uint64_t age_ns, char *text, size_t text_bytes);

#endif

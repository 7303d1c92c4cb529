/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thresholds (record --on): of which measure, and when it is crossed. Pure: readings in, decisions out.
 *
 *   rss=2G       a level: crossed when the value reaches it; then it must fall below it by a margin before it
 *                can be crossed again, so a heap that hovers about the level is one crossing
 *   rss=+256M    growth: crossed when the value is that much above the one at the last snapshot for this
 *                threshold, or at the start. What falls in between does not move that mark
 *   alloc=10G    the same as alloc=+10G, for what was allocated only grows
 *   memory.high  crossed when the process' memory cgroup is, see sampler/linux/memory_high.h
 *
 * Between two snapshots for one threshold of one process there is a time, the limit. A crossing in it waits:
 * when the time is over, a snapshot is due if the value is still there. All but the last of those that wait
 * are counted as suppressed, and the last one too if the value is gone by then.
 */
#ifndef SAMPLER_SNAPSHOT_THRESHOLD_H
#define SAMPLER_SNAPSHOT_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

enum threshold_measure {
	THRESHOLD_RSS,
	THRESHOLD_INUSE,
	THRESHOLD_ALLOC,
	THRESHOLD_MEMORY_HIGH,
};

/* Names of the measures, on the command line and in the names of files; NULL-terminated. */
extern const char *const threshold_names[];

struct threshold {
	enum threshold_measure measure;
	bool growth;
	uint64_t bytes; /* not of THRESHOLD_MEMORY_HIGH */
};

enum { THRESHOLDS_MAX = 16 };

/* One threshold of one process. */
struct threshold_state {
	uint64_t base_bytes; /* growth: at the last snapshot for it, or at the start */
	uint64_t mark_bytes; /* growth: the same, but also raised by crossings that wait */
	bool above;          /* a level: it was reached, and the value has not fallen by the margin since */
	uint64_t crossings_seen; /* of the memory cgroup */
	uint64_t waiting;        /* crossings that wait for the limit to be over */
	uint64_t next_ns;        /* no snapshot before */
	uint64_t suppressed;
};

struct threshold_reading {
	uint64_t bytes;
	uint64_t highest_bytes; /* since the last reading; bytes or more */
	uint64_t error_bytes;   /* standard error of an estimate; 0: exact */
};

/* The first reading. `fresh`: the process began with nothing, under our eyes; else what it has now is where
 * it begins: a forked child, a process that was adopted. */
void threshold_begin(const struct threshold *threshold, struct threshold_state *state,
    const struct threshold_reading *reading, bool fresh);

/* The next reading, of any measure but memory.high. True: a snapshot is due. limit_ns 0: no limit. */
bool threshold_look(const struct threshold *threshold, struct threshold_state *state,
    const struct threshold_reading *reading, uint64_t now_ns, uint64_t limit_ns);

/* For a measure that is not a reading. crossed: just now; still: it is beyond it at this moment. */
bool threshold_cross(
    struct threshold_state *state, bool crossed, bool still, uint64_t now_ns, uint64_t limit_ns);

/* How far the value must move before something happens. */
uint64_t threshold_distance(const struct threshold *threshold, const struct threshold_state *state,
    const struct threshold_reading *reading);

#endif

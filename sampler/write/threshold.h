/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thresholds (record --on): which measure they are about, and when they are crossed. Pure: readings in,
 * decisions out.
 *
 *   rss=2G       a level: crossed when the value reaches it; then it must fall below it by a margin before it
 *                can be crossed again, so a heap that hovers about the level is one crossing
 *   rss=+256M    growth: crossed when the value is that much above the one at the last snapshot for this
 *                threshold, or at the start. What falls in between does not move that mark
 *   alloc=10G    the same as alloc=+10G, for what was allocated only grows
 *   memory.high  crossed when the process' memory cgroup is, see sampler/linux/memory_high.h
 *
 * The limit is the least time between two snapshots of one process for one threshold. A crossing within that
 * time waits. When the time is over, a snapshot is due if the value is still beyond the threshold. Of several
 * crossings that wait, only the last can get a snapshot; the others are counted as suppressed.
 */
#ifndef SAMPLER_WRITE_THRESHOLD_H
#define SAMPLER_WRITE_THRESHOLD_H

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
	uint64_t bytes; /* unused with THRESHOLD_MEMORY_HIGH */
};

enum { THRESHOLDS_MAX = 16 };

/* The state of one threshold of one process. */
struct threshold_state {
	uint64_t base_bytes; /* growth: the value at the last snapshot for it, or at the start */
	uint64_t mark_bytes; /* growth: the same value, but crossings that wait raise it too */
	bool above;          /* a level: the value has reached it, and has not fallen by the margin since */
	uint64_t crossings_seen; /* of the memory cgroup */
	uint64_t waiting;        /* crossings that wait for the limit to be over */
	uint64_t next_ns;        /* no snapshot is due before this time */
	uint64_t suppressed;
};

struct threshold_reading {
	uint64_t bytes;
	uint64_t highest_bytes; /* since the last reading; bytes or more */
	uint64_t error_bytes;   /* standard error of an estimate; 0: exact */
};

/* Begins with the first reading. fresh: the process began with nothing. A forked child, or a process that was
 * there before the session, begins with what it has now. */
void threshold_begin(const struct threshold *threshold, struct threshold_state *state,
    const struct threshold_reading *reading, bool fresh);

/* Takes the next reading, of any measure but memory.high. True if a snapshot is due. limit_ns 0: no limit. */
bool threshold_look(const struct threshold *threshold, struct threshold_state *state,
    const struct threshold_reading *reading, uint64_t now_ns, uint64_t limit_ns);

/* The same for a measure without readings. crossed: since the last call. still: the value is beyond the
 * threshold now. */
bool threshold_cross(
    struct threshold_state *state, bool crossed, bool still, uint64_t now_ns, uint64_t limit_ns);

/* How far the value must move before something happens. */
uint64_t threshold_distance(const struct threshold *threshold, const struct threshold_state *state,
    const struct threshold_reading *reading);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile of a process' peak: its heap at the largest so far.
 *
 * The process finds its own peak. Each time it counts a block, it compares what is live with the largest sum
 * so far, and gives a larger one the next number (preload/tally.c). The blocks of the peak keep their slots
 * until the next peak (preload/slot.c). A snapshot copies those slots (intake/live_scan.c), makes rows of
 * them (books/heap_view.c), and writes them here.
 *
 * One file holds the peak; each new peak replaces it. A store removes files by the time in their names. So
 * in a store the file gets a new name twice a day, and a process that runs for longer than `days` still has a
 * peak.
 */
#ifndef SAMPLER_WRITE_PEAK_H
#define SAMPLER_WRITE_PEAK_H

struct heap_snapshot;
struct live_scan;
struct scheduler;
struct snapshot_series;

/* Adds the peak to the snapshot: a numbered one gets it only if it is not in the file yet. */
void peak_add(const struct scheduler *scheduler, struct heap_snapshot *snapshot,
    struct snapshot_series *series, const struct live_scan *scan);

/* The snapshot is on disk, with the peak that was added to it. */
void peak_written(struct snapshot_series *series, const struct heap_snapshot *snapshot);

#endif

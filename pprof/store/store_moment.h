/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SERVICE[@TIME]: which files of a store tell the state of a service at a time.
 *
 * A process counts if it has a snapshot at or before TIME, and no end (exit, oom) by then. Its snapshot must
 * not be older than an hour, or one and a half times the distance of the newest process' last two: else the
 * process has gone without a word. If no process lives, the processes that ended last count, with their ends.
 *
 * TIME: now; 30s, 10m, 2h, 3d (ago); 14:30, 14:30:05 (today, or yesterday if that is still to come);
 * 2026-11-22 (the end of that day); 2026-11-22T14:30, 2026-11-22T14:30:05; @1795348560 (since 1970). A time
 * without seconds is the end of its minute. Times are local, or UTC with a Z behind them.
 */
#ifndef PPROF_STORE_STORE_MOMENT_H
#define PPROF_STORE_STORE_MOMENT_H

#include "pprof/store/store_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_MOMENT_TIMES "now, 10m (ago), 14:30, 2026-11-22, 2026-11-22T14:30[:05][Z] or @SECONDS"

/* 0 or -EINVAL. now_s: what "now" is. Pure but for the time zone (localtime(3)). */
int store_moment_time(const char *text, int64_t now_s, int64_t *time_s);

/* Splits "redis@14:30". The part behind the last '@' is a time if it can be read as a time, else it belongs
 * to the name ("getty@tty1"). Without a time *time_s is now_s. False if the rest is not a service's name. */
bool store_moment_split(
    const char *text, int64_t now_s, char service[SERVICE_NAME_BYTES], int64_t *time_s, bool *has_time);

enum store_moment_wanted {
	/* the last snapshot of each process, and its peak; of several snapshots of its last second all, for a
	 * name tells no fraction of a second */
	STORE_MOMENT_STATES,
	/* if one process counts, also STORE_MOMENT_SERIES_MOST of its earlier snapshots */
	STORE_MOMENT_SERIES,
	STORE_MOMENT_ALL, /* all profiles of these processes up to then, with deltas, without events */
	/* all profiles of the service up to then, with ended processes and events */
	STORE_MOMENT_EVERYTHING,
};

enum { STORE_MOMENT_SERIES_MOST = 48 }; /* those of the last second count as one */

/* Writes the numbers of the chosen files, by time, into `chosen` (room for `count`). *chosen_count is 0 if
 * nothing is known of the service at that time. first, count: from store_list_service(). 0 or -ENOMEM. */
int store_moment_choose(const struct store_list *list, size_t first, size_t count, int64_t time_s,
    enum store_moment_wanted wanted, size_t *chosen, size_t *chosen_count);

#endif

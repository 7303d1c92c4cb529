/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that every snapshot of a process replaces: its peak, its time line, its lifetimes.
 *
 * Its path is made when it is first needed. Where the daemon names the files, the name has the time in it,
 * and the store removes by that time what is older than `days`, and of several such files of a process all
 * but the last. So there a new path is made twice a day.
 */
#ifndef SAMPLER_SNAPSHOT_STANDING_FILE_H
#define SAMPLER_SNAPSHOT_STANDING_FILE_H

#include "sampler/snapshot/scheduler.h"

/* Whether a new path is due. */
bool standing_file_is_old(const struct scheduler *scheduler, const struct snapshot_series_standing *file);

/* Copies of the path, for free(), as the next snapshot may make a new one; NULL: no path could be made,
 * which is logged once. The second: of a file of JSON lines. */
char *standing_file_path(const struct scheduler *scheduler, const struct target *target, const char *name,
    struct snapshot_series_standing *file);
char *standing_file_jsonl(const struct scheduler *scheduler, const struct target *target, const char *name,
    struct snapshot_series_standing *file);

/* The path of any other file of the same instant, likewise. */
char *standing_file_beside(const struct scheduler *scheduler, const struct target *target, const char *name);

#endif

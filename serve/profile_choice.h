/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which profiles a request of /api/v1 means. Each has an id: "f-" and a file's number, or "m-PID-NS" for a
 * moment of a live process that is kept in memory; "now-PID" is made when it is asked for.
 */
#ifndef SERVE_PROFILE_CHOICE_H
#define SERVE_PROFILE_CHOICE_H

#include "serve/catalog.h"
#include "serve/task.h"

/* The newest state of a process' heap among its files, or what there is of it; NULL: it has none. */
const struct catalog_file *profile_choice_newest(const struct catalog_process *process);

void profile_choice_file_id(char id[TASK_ID_BYTES], const struct catalog_file *file);
void profile_choice_kept_id(
    char id[TASK_ID_BYTES], const struct catalog_process *process, const struct kept_snapshot *kept);

/* Sets kind, key and so on of the item for the profile of that id. False: there is none. */
bool profile_choice_by_id(
    const struct catalog *catalog, const struct snapshots *snapshots, const char *id, struct task_item *item);

/* The same for a process: its heap now, or with at_ns (since 1970; 0: not given) that of the moment nearest
 * to it, not after it where there is such. peak: its peak. False: it has none. */
bool profile_choice_of(const struct catalog_process *process, const struct snapshots *snapshots,
    int64_t at_ns, bool peak, struct task_item *item);

/* Whose profile that is; NULL: there is no such profile, or nobody's any more. */
const struct catalog_process *profile_choice_owner(const struct catalog *catalog, const char *id);

/* A state of a process: one of the two. */
struct profile_choice_state {
	int64_t time_ns;
	const struct catalog_file *file;
	const struct kept_snapshot *kept;
};

/* All states of a process, by time: its files, and the moments that are kept of it. The caller frees them;
 * NULL: no memory. Valid until the next look. */
struct profile_choice_state *profile_choice_states(
    const struct catalog_process *process, const struct snapshots *snapshots, size_t *count);

/* Sets the item, and its id, for a state. */
void profile_choice_take(
    const struct catalog_process *process, const struct profile_choice_state *state, struct task_item *item);

/* A series of a process' states: its files and the moments that are kept of it, by time. `most` (2 at least)
 * of them, spread over all, the first and the last among them. Fills in items and their ids, and returns how
 * many: without memory none. */
size_t profile_choice_series(const struct catalog_process *process, const struct snapshots *snapshots,
    struct task_item *items, size_t most);

#endif

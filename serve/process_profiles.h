/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiles of a process: its files, its kept snapshots, and the profile of its heap now. In /api/v1 each
 * profile has an id: "f-" and the number of a file; "m-PID-NS" for a kept snapshot of a live process;
 * "now-PID" for a profile that is made when a client asks for it.
 */
#ifndef SERVE_PROCESS_PROFILES_H
#define SERVE_PROCESS_PROFILES_H

#include "serve/catalog.h"
#include "serve/request.h"

/* The newest file of a process that is a state of its heap; if there is none, its newest file of any kind.
 * NULL: it has no file. */
const struct catalog_file *process_profiles_newest(const struct catalog_process *process);

void process_profiles_file_id(char id[TASK_ID_BYTES], const struct catalog_file *file);
void process_profiles_kept_id(
    char id[TASK_ID_BYTES], const struct catalog_process *process, const struct kept_snapshot *kept);

/* Sets the item for the profile of that id: its kind, its key and so on. False: there is no such profile. */
bool process_profiles_by_id(
    const struct catalog *catalog, const struct snapshots *snapshots, const char *id, struct task_item *item);

/* Sets the item for a profile of a process. peak: its peak. at_ns (since 1970; 0: not given): the last state
 * that is not later, or else the first later one. Otherwise its heap now. False: it has no such profile. */
bool process_profiles_of(const struct catalog_process *process, const struct snapshots *snapshots,
    int64_t at_ns, bool peak, struct task_item *item);

/* The process of the profile with that id; NULL if there is no such profile or no process any more. */
const struct catalog_process *process_profiles_owner(const struct catalog *catalog, const char *id);

/* A state of a process: either a file or a kept snapshot. */
struct process_profiles_state {
	int64_t time_ns;
	const struct catalog_file *file;
	const struct kept_snapshot *kept;
};

/* All states of a process, by time: its files and its kept snapshots. The caller frees them. NULL: no memory.
 * Valid until the next look. */
struct process_profiles_state *process_profiles_states(
    const struct catalog_process *process, const struct snapshots *snapshots, size_t *count);

/* Sets the item for a state, with its id. */
void process_profiles_take(const struct catalog_process *process, const struct process_profiles_state *state,
    struct task_item *item);

/* Sets items, with their ids, for at most `most` states of a process (at least 2), by time. They are spread
 * over all its states, and have the first and the last. Returns how many; 0 if there is no memory. */
size_t process_profiles_series(const struct catalog_process *process, const struct snapshots *snapshots,
    struct task_item *items, size_t most);

#endif

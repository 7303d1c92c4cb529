/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/process_profiles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct catalog_file *process_profiles_newest(const struct catalog_process *process)
{
	const struct catalog_file *newest = NULL;

	for (size_t i = 0; i < process->file_count; i++)
		if (catalog_file_is_state(process->files[i]))
			newest = process->files[i];
	return newest ? newest : process->file_count ? process->files[process->file_count - 1] : NULL;
}

void process_profiles_file_id(char id[TASK_ID_BYTES], const struct catalog_file *file)
{
	snprintf(id, TASK_ID_BYTES, "f-%016" PRIx64, file->number);
}

void process_profiles_kept_id(
    char id[TASK_ID_BYTES], const struct catalog_process *process, const struct kept_snapshot *kept)
{
	snprintf(id, TASK_ID_BYTES, "m-%d-%" PRId64, (int)process->key.pid, kept->unix_ns);
}

static void take_file(struct task_item *item, const struct catalog_file *file)
{
	item->kind = TASK_FILE;
	item->file = file->number;
}

static void take_kept_snapshot(struct task_item *item, const struct kept_snapshot *kept)
{
	item->kind = TASK_READY;
	item->profile = blob_hold(kept->profile);
}

static const struct catalog_process *process_of(const struct catalog *catalog, pid_t pid)
{
	size_t count;
	const struct catalog_process *processes = catalog_processes(catalog, &count);

	for (size_t i = 0; i < count; i++)
		if (processes[i].listed && processes[i].key.pid == pid)
			return &processes[i];
	return NULL;
}

static bool take_kept(const struct catalog_process *process, const struct snapshots *snapshots,
    int64_t unix_ns, struct task_item *item)
{
	const struct kept_snapshot *kept;
	size_t count = snapshots_kept(snapshots, &process->key, &kept);

	for (size_t i = 0; i < count; i++) {
		if (kept[i].unix_ns == unix_ns) {
			take_kept_snapshot(item, &kept[i]);
			return true;
		}
	}
	return false;
}

bool process_profiles_by_id(
    const struct catalog *catalog, const struct snapshots *snapshots, const char *id, struct task_item *item)
{
	const struct catalog_process *process;
	const struct catalog_file *file;
	int64_t unix_ns;
	uint64_t number;
	int pid, length = 0;

	if (strlen(id) >= TASK_ID_BYTES)
		return false;
	if (sscanf(id, "f-%16" SCNx64 "%n", &number, &length) == 1 && !id[length]) {
		file = catalog_file(catalog, number);
		if (file)
			take_file(item, file);
		return file != NULL;
	}
	if (sscanf(id, "now-%9d%n", &pid, &length) == 1 && !id[length]) {
		process = process_of(catalog, pid);
		return process && process_profiles_of(process, snapshots, 0, false, item);
	}
	if (sscanf(id, "m-%9d-%19" SCNd64 "%n", &pid, &unix_ns, &length) != 2 || id[length])
		return false;
	process = process_of(catalog, pid);
	return process && take_kept(process, snapshots, unix_ns, item);
}

/* Is `time_ns` a better answer to `at_ns` than `best_ns` (0: none yet)? */
static bool is_better(int64_t time_ns, int64_t best_ns, int64_t at_ns)
{
	if (!best_ns)
		return true;
	if ((time_ns <= at_ns) != (best_ns <= at_ns))
		return time_ns <= at_ns;
	return time_ns <= at_ns ? time_ns > best_ns : time_ns < best_ns;
}

static bool take_at(const struct catalog_process *process, const struct snapshots *snapshots, int64_t at_ns,
    struct task_item *item)
{
	const struct catalog_file *file = NULL;
	const struct kept_snapshot *kept, *nearest = NULL;
	size_t count = snapshots_kept(snapshots, &process->key, &kept);
	int64_t best_ns = 0;

	for (size_t i = 0; i < process->file_count; i++) {
		if (!catalog_file_is_state(process->files[i]) ||
		    !is_better(process->files[i]->time_ns, best_ns, at_ns))
			continue;
		file = process->files[i];
		best_ns = file->time_ns;
	}
	for (size_t i = 0; i < count; i++) {
		if (!is_better(kept[i].unix_ns, best_ns, at_ns))
			continue;
		nearest = &kept[i];
		best_ns = nearest->unix_ns;
	}
	if (nearest)
		take_kept_snapshot(item, nearest);
	else if (file)
		take_file(item, file);
	return nearest || file;
}

bool process_profiles_of(const struct catalog_process *process, const struct snapshots *snapshots,
    int64_t at_ns, bool peak, struct task_item *item)
{
	const struct catalog_file *file = NULL;

	item->key = process->key;
	for (size_t i = 0; i < process->file_count && peak; i++)
		if (process->files[i]->kind == ORIGIN_PEAK)
			file = process->files[i];
	if (peak) {
		if (file)
			take_file(item, file);
		return file != NULL;
	}
	if (at_ns && take_at(process, snapshots, at_ns, item))
		return true;
	if (process->listed) {
		item->kind = TASK_NOW;
		return true;
	}
	file = process_profiles_newest(process);
	if (file)
		take_file(item, file);
	return file != NULL;
}

/* ---- whose, and over time */

static const struct catalog_process *process_of_file(const struct catalog *catalog, uint64_t number)
{
	size_t count;
	const struct catalog_process *processes = catalog_processes(catalog, &count);

	for (size_t i = 0; i < count; i++)
		for (size_t f = 0; f < processes[i].file_count; f++)
			if (processes[i].files[f]->number == number)
				return &processes[i];
	return NULL;
}

const struct catalog_process *process_profiles_owner(const struct catalog *catalog, const char *id)
{
	uint64_t number;
	int pid, length = 0;

	if (strlen(id) >= TASK_ID_BYTES)
		return NULL;
	if (sscanf(id, "f-%16" SCNx64 "%n", &number, &length) == 1 && !id[length])
		return process_of_file(catalog, number);
	if (sscanf(id, "now-%9d%n", &pid, &length) == 1 && !id[length])
		return process_of(catalog, pid);
	return sscanf(id, "m-%9d-", &pid) == 1 ? process_of(catalog, pid) : NULL;
}

/* Chooses the first, the last, and as many between that there are `most`. */
static bool is_chosen(size_t index, size_t all, size_t most)
{
	return all <= most || index == 0 ||
	    index * (most - 1) / (all - 1) != (index - 1) * (most - 1) / (all - 1);
}

struct process_profiles_state *process_profiles_states(
    const struct catalog_process *process, const struct snapshots *snapshots, size_t *count)
{
	const struct kept_snapshot *kept;
	size_t kept_count = snapshots_kept(snapshots, &process->key, &kept), next = 0;
	struct process_profiles_state *states = calloc(process->file_count + kept_count + 1, sizeof(*states)),
	                              *to = states;

	for (size_t i = 0; i < process->file_count && states; i++) {
		const struct catalog_file *file = process->files[i];

		if (!catalog_file_is_state(file))
			continue;
		for (; next < kept_count && kept[next].unix_ns < file->time_ns; next++)
			*to++ = (struct process_profiles_state){
			    .time_ns = kept[next].unix_ns, .kept = &kept[next]};
		*to++ = (struct process_profiles_state){.time_ns = file->time_ns, .file = file};
	}
	for (; next < kept_count && states; next++)
		*to++ = (struct process_profiles_state){.time_ns = kept[next].unix_ns, .kept = &kept[next]};
	*count = (size_t)(to - states);
	return states;
}

void process_profiles_take(
    const struct catalog_process *process, const struct process_profiles_state *state, struct task_item *item)
{
	if (state->file) {
		take_file(item, state->file);
		process_profiles_file_id(item->id, state->file);
	} else {
		take_kept_snapshot(item, state->kept);
		process_profiles_kept_id(item->id, process, state->kept);
	}
}

size_t process_profiles_series(const struct catalog_process *process, const struct snapshots *snapshots,
    struct task_item *items, size_t most)
{
	size_t all, count = 0;
	struct process_profiles_state *states = process_profiles_states(process, snapshots, &all);

	for (size_t i = 0; i < all && states; i++) {
		if (!is_chosen(i, all, most))
			continue;
		process_profiles_take(process, &states[i], &items[count++]);
	}
	free(states);
	return count;
}

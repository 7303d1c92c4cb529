/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/unfollowed.h"

#include "pprof/table/array.h"
#include "pprof/text/log_line.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BIRTHS_MOST = 1 << 16,
	DEPTH_MOST = 8,           /* of forks without a sample */
	CHILDREN_BYTES = 16 << 10 /* of pids: a thread with more children is not looked at */
};

void unfollowed_begin(struct image *image)
{
	struct thread_birth birth = thread_facts_birth(image->origin.attached_pid);
	struct unfollowed *u = &image->unfollowed;

	u->stack_start = birth.stack_start;
	u->since_ticks = thread_facts_now();
}

static bool is_seen(const struct unfollowed *u, pid_t pid, uint64_t ticks)
{
	for (size_t i = 0; i < u->seen_count; i++)
		if (u->seen[i].pid == pid && u->seen[i].ticks == ticks)
			return true;
	return false;
}

/* The name is hostile text. */
static void note(struct image *image, pid_t pid, const char *comm)
{
	struct unfollowed *u = &image->unfollowed;
	char path[TARGET_NAME_BYTES], name[PROC_COMM_BYTES];

	if (!comm)
		proc_read_comm(pid, name);
	if (proc_read_exe(pid, path, sizeof(path)) <= 0)
		snprintf(path, sizeof(path), "%s", comm ? comm : name);
	proc_strip_deleted(path);
	for (char *c = path; *c; c++)
		*c = *c >= ' ' && *c <= '~' ? *c : '?';
	u->count++;
	snprintf(u->last, sizeof(u->last), "%.200s (pid %d)", path, (int)pid);
}

/* ---- by looks */

struct look {
	struct image *image;
	uint32_t depth;
};

static int look_at_thread(void *context, pid_t tid);

static void look_at_child(struct look *look, pid_t pid)
{
	struct unfollowed *u = &look->image->unfollowed;
	struct thread_birth birth = thread_facts_birth(pid);

	if (!birth.ticks || birth.ticks < u->since_ticks || !birth.stack_start || !u->stack_start)
		return;
	if (birth.stack_start == u->stack_start) { /* forked, and has executed nothing */
		if (look->depth < DEPTH_MOST) {
			look->depth++;
			(void)proc_each_thread(pid, look_at_thread, look);
			look->depth--;
		}
		return;
	}
	if (is_seen(u, pid, birth.ticks) ||
	    array_reserve(&u->seen, &u->seen_capacity, u->seen_count + 1, sizeof(*u->seen)) != 0)
		return;
	u->seen[u->seen_count++] = (struct unfollowed_child){pid, birth.ticks};
	note(look->image, pid, NULL);
}

static int look_at_thread(void *context, pid_t tid)
{
	char path[PROC_PATH_BYTES], *text = malloc(CHILDREN_BYTES), *end;

	snprintf(path, sizeof(path), "task/%d/children", (int)tid);
	ssize_t length = text ? proc_read(tid, path, text, CHILDREN_BYTES) : -1;
	if (length > 0 && length < CHILDREN_BYTES - 1)
		for (const char *at = text; *at; at = end) {
			long pid = strtol(at, &end, 10);

			if (end == at)
				break;
			look_at_child(context, (pid_t)pid);
		}
	free(text);
	return 0;
}

/* A process that has ended makes room for another. */
static void forget_ended(struct unfollowed *u)
{
	for (size_t i = u->seen_count; i-- > 0;)
		if (thread_facts_birth(u->seen[i].pid).ticks != u->seen[i].ticks)
			u->seen[i] = u->seen[--u->seen_count];
}

static void look(struct image *image)
{
	struct look all = {.image = image};

	forget_ended(&image->unfollowed);
	image_each_process (process, image)
		if (!process->target.closed && process->target.pidfd >= 0)
			(void)proc_each_thread(process->target.pid, look_at_thread, &all);
}

/* ---- by records */

static struct image *image_of(const struct table *births, const struct table *processes, pid_t pid)
{
	size_t cursor = 0;
	struct image *image = table_next(births, (uint64_t)pid, &cursor);
	const struct process *process;

	for (cursor = 0; !image && (process = table_next(processes, (uint64_t)pid, &cursor));)
		if (!process->target.closed && process->image->origin.attached_pid)
			image = process->image;
	return image;
}

static void forget_birth(struct table *births, pid_t pid)
{
	size_t cursor = 0;
	const struct image *image = table_next(births, (uint64_t)pid, &cursor);

	if (image)
		table_remove(births, (uint64_t)pid, image);
}

void unfollowed_record(struct table *births, const struct table *processes, const struct record *record)
{
	pid_t pid = (pid_t)record->pid;
	struct image *image;
	size_t cursor = 0;

	if (record->kind == RECORD_EXIT && record->pid == record->tid)
		forget_birth(births, pid);
	if (record->kind == RECORD_FORK && record->pid != record->parent_pid) {
		forget_birth(births, pid);
		image = image_of(births, processes, (pid_t)record->parent_pid);
		if (image && births->count < BIRTHS_MOST)
			(void)table_add(births, (uint64_t)pid, image);
	}
	if (record->kind != RECORD_COMM || !record->exec)
		return;
	image = table_next(births, (uint64_t)pid, &cursor);
	if (image)
		note(image, pid, record->path);
	forget_birth(births, pid);
}

void unfollowed_tend(struct image *image, bool by_records, int verbosity)
{
	struct unfollowed *u = &image->unfollowed;

	if (!image->origin.attached_pid)
		return;
	if (!by_records)
		look(image);
	if (u->count != u->said && verbosity > 0)
		log_line("pid %d: its child executed %s, which is not followed (%" PRIu64 " in all)",
		    (int)image->origin.attached_pid, u->last, u->count);
	u->said = u->count;
}

void unfollowed_end(struct image *image, struct table *births)
{
	for (size_t i = births->count; i-- > 0;)
		if (births->entries[i].item == image)
			table_remove(births, births->entries[i].key, image);
	free(image->unfollowed.seen);
	image->unfollowed = (struct unfollowed){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/unfollowed.h"

#include "pprof/table/array.h"
#include "pprof/text/log_line.h"
#include "sampler/books/executed.h"
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

void unfollowed_begin(struct program_run *run, pid_t pid)
{
	struct thread_birth birth = thread_facts_birth(pid);
	struct unfollowed *u = &run->unfollowed;

	u->stack_start = birth.stack_start;
	u->since_ticks = run->origin.attached_pid ? thread_facts_now() : birth.ticks;
}

static bool is_seen(const struct unfollowed *u, pid_t pid, uint64_t ticks)
{
	for (size_t i = 0; i < u->seen_count; i++)
		if (u->seen[i].pid == pid && u->seen[i].ticks == ticks)
			return true;
	return false;
}

/* The name is hostile text. */
static void note(struct program_run *run, pid_t pid, const char *comm)
{
	struct unfollowed *u = &run->unfollowed;
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

/* The child of a process that has the library: has it loaded the library, too? */
static void note_missed(struct missed *missed, pid_t pid)
{
	char path[TARGET_NAME_BYTES], text[TARGET_UNPROFILED_BYTES];
	const char *why = executed_obstacle(pid);

	if (!why || proc_read_exe(pid, path, sizeof(path)) <= 0)
		return;
	proc_strip_deleted(path);
	executed_describe(path, why, text);
	missed_note_executed(missed, text);
}

/* ---- by looks */

struct look {
	struct program_run *run;
	struct missed *missed; /* NULL: the run was attached to */
	uint32_t depth;
};

static int look_at_thread(void *context, pid_t tid);

static void look_at_child(struct look *look, pid_t pid)
{
	struct unfollowed *u = &look->run->unfollowed;
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
	if (is_seen(u, pid, birth.ticks) || (look->missed && executed_is_underway(pid)) ||
	    array_reserve(&u->seen, &u->seen_capacity, u->seen_count + 1, sizeof(*u->seen)) != 0)
		return;
	u->seen[u->seen_count++] = (struct unfollowed_child){pid, birth.ticks};
	if (look->missed)
		note_missed(look->missed, pid);
	else
		note(look->run, pid, NULL);
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

static void look(struct program_run *run, struct missed *missed)
{
	struct look all = {.run = run, .missed = missed};

	forget_ended(&run->unfollowed);
	program_run_each_process(process, run) if (!process->target.closed && process->target.pidfd >= 0)(
	    void) proc_each_thread(process->target.pid, look_at_thread, &all);
}

/* ---- by records */

static struct program_run *run_of(const struct table *births, const struct table *processes, pid_t pid)
{
	size_t cursor = 0;
	struct program_run *run = table_next(births, (uint64_t)pid, &cursor);
	const struct process *process;

	for (cursor = 0; !run && (process = table_next(processes, (uint64_t)pid, &cursor));)
		if (!process->target.closed && process->run->origin.attached_pid)
			run = process->run;
	return run;
}

static void forget_birth(struct table *births, pid_t pid)
{
	size_t cursor = 0;
	const struct program_run *run = table_next(births, (uint64_t)pid, &cursor);

	if (run)
		table_remove(births, (uint64_t)pid, run);
}

void unfollowed_record(struct table *births, const struct table *processes, const struct record *record)
{
	pid_t pid = (pid_t)record->pid;
	struct program_run *run;
	size_t cursor = 0;

	if (record->kind == RECORD_EXIT && record->pid == record->tid)
		forget_birth(births, pid);
	if (record->kind == RECORD_FORK && record->pid != record->parent_pid) {
		forget_birth(births, pid);
		run = run_of(births, processes, (pid_t)record->parent_pid);
		if (run && births->count < BIRTHS_MOST)
			(void)table_add(births, (uint64_t)pid, run);
	}
	if (record->kind != RECORD_COMM || !record->exec)
		return;
	run = table_next(births, (uint64_t)pid, &cursor);
	if (run)
		note(run, pid, record->path);
	forget_birth(births, pid);
}

void unfollowed_tend(struct program_run *run, bool by_records, int verbosity)
{
	struct unfollowed *u = &run->unfollowed;

	if (!run->origin.attached_pid)
		return;
	if (!by_records)
		look(run, NULL);
	if (u->count != u->said && verbosity > 0)
		log_line("pid %d: its child executed %s, which is not followed (%" PRIu64 " in all)",
		    (int)run->origin.attached_pid, u->last, u->count);
	u->said = u->count;
}

void unfollowed_look(struct program_run *run, struct missed *missed)
{
	if (!run->origin.attached_pid && !run->origin.offered)
		look(run, missed);
}

void unfollowed_end(struct program_run *run, struct table *births)
{
	for (size_t i = births->count; i-- > 0;)
		if (births->entries[i].item == run)
			table_remove(births, births->entries[i].key, run);
	free(run->unfollowed.seen);
	run->unfollowed = (struct unfollowed){0};
}

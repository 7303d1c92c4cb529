/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/unprofiled.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"
#include "sampler/books/books.h"
#include "sampler/books/executed.h"
#include "sampler/books/program_run.h"
#include "sampler/inject/preload_library.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BIRTHS_MOST = 1 << 16,
	DEPTH_MOST = 8,            /* of forks without a sample */
	CHILDREN_BYTES = 16 << 10, /* of pids: a thread with more children is not looked at */
	COMMAND_LINE_BYTES = 16 << 10,
};

/* ---- counts */

void unprofiled_note_incomplete(struct unprofiled *unprofiled)
{
	unprofiled->incomplete++;
}

void unprofiled_note_declined(struct unprofiled *unprofiled, const char *why)
{
	unprofiled->declined++;
	unprofiled->declined_text = why;
}

void unprofiled_note_executed(struct unprofiled *unprofiled, const char *unseen)
{
	unprofiled->executed++;
	snprintf(unprofiled->executed_text, sizeof(unprofiled->executed_text), "%s", unseen);
	utf8_disarm(unprofiled->executed_text, strlen(unprofiled->executed_text));
}

void unprofiled_note_unchosen(struct unprofiled *unprofiled, const char *title)
{
	unprofiled->unchosen++;
	snprintf(unprofiled->unchosen_title, sizeof(unprofiled->unchosen_title), "%s", title);
	utf8_disarm(unprofiled->unchosen_title, strlen(unprofiled->unchosen_title));
}

void unprofiled_note_command(struct unprofiled *unprofiled, bool unchosen)
{
	unprofiled->command_seen = true;
	unprofiled->command_unchosen = unchosen;
}

void unprofiled_note_command_declined(struct unprofiled *unprofiled, const char *why)
{
	unprofiled->command_declined_text = why;
}

static void append_count(char *text, size_t bytes, uint64_t count, const char *noun, const char *nouns)
{
	if (count)
		text_append(text, bytes, "%s%" PRIu64 " %s", text[0] ? ", " : "not profiled: ", count,
		    count == 1 ? noun : nouns);
}

/* Something that is no reason for not being profiled. */
static void append_aside(char *text, size_t bytes, const char *what, uint64_t count, const char *nouns)
{
	if (count)
		text_append(text, bytes, "%s%s: %" PRIu64 " %s", text[0] ? "; " : "", what, count, nouns);
}

void unprofiled_describe(
    const struct unprofiled *unprofiled, const struct region_pool *pool, char *text, size_t bytes)
{
	text[0] = '\0';
	if (!pool)
		return;
	const uint64_t unmapped = region_pool_unmapped(pool), strangers = region_pool_strangers(pool),
	               crowded_out = region_pool_crowded_out(pool);
	append_count(text, bytes, region_pool_unserved(pool), "program without a free region",
	    "programs without a free region");
	if (unmapped)
		text_append(text, bytes,
		    " (for %" PRIu64 " of them the sampler had no address space left, ulimit -v)", unmapped);
	append_count(text, bytes, unprofiled->incomplete, "program that did not finish attaching",
	    "programs that did not finish attaching");
	append_count(text, bytes, unprofiled->declined, "program: ", "programs, the last one: ");
	if (unprofiled->declined)
		text_append(text, bytes, "%s", unprofiled->declined_text);
	append_count(text, bytes, unprofiled->executed, "process after an exec; the last ",
	    "processes after an exec; the last ");
	if (unprofiled->executed)
		text_append(text, bytes, "%s", unprofiled->executed_text);
	append_aside(text, bytes, "not chosen by --only and --exclude", unprofiled->unchosen,
	    unprofiled->unchosen == 1 ? "program, " : "programs, the last ");
	if (unprofiled->unchosen)
		text_append(text, bytes, "%s", unprofiled->unchosen_title);
	append_aside(text, bytes, "refused at the region socket", strangers,
	    strangers == 1 ? "connection without the session's cookie"
	                   : "connections without the session's cookie");
	append_aside(text, bytes, "dropped at the region socket", crowded_out,
	    crowded_out == 1 ? "connection that had sent nothing yet, among too many"
	                     : "connections that had sent nothing yet, among too many");
}

/* ---- children */

void unprofiled_children_begin(struct program_run *run)
{
	struct thread_birth birth = thread_facts_birth(run->origin.attached_pid);
	struct unfollowed *u = &run->unfollowed;

	u->stack_start = birth.stack_start;
	u->since_ticks = thread_facts_now();
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
	u->count++;
	snprintf(u->last, sizeof(u->last), "%.200s (pid %d)", path, (int)pid);
	utf8_disarm(u->last, strlen(u->last));
}

/* ---- children, by looks */

struct look {
	struct program_run *run;
	struct unprofiled *unprofiled;
	uint64_t now_ns;
	uint32_t depth;
};

static struct unfollowed_child *find_seen(const struct unfollowed *u, pid_t pid, uint64_t ticks)
{
	for (size_t i = 0; i < u->seen_count; i++)
		if (u->seen[i].pid == pid && u->seen[i].ticks == ticks)
			return &u->seen[i];
	return NULL;
}

static bool is_in_books(const struct books *books, pid_t pid)
{
	size_t cursor = 0;

	if (table_next(&books->processes, (uint64_t)pid, &cursor))
		return true;
	books_each_run(run, books) if (program_run_pid(run) == pid) return true;
	return false;
}

/* Whether the books know of the program that the process executes. *counted: it is counted with its reason,
 * or will be when the process is closed. A program that was in our books for a moment, such as env, may have
 * executed another program before the sampler looked. */
static bool is_accounted_for(const struct books *books, pid_t pid, bool *counted)
{
	const struct process *process;
	bool had = false;

	for (size_t cursor = 0; (process = table_next(&books->processes, (uint64_t)pid, &cursor));
	     had = true) {
		*counted = *counted || process->target.unprofiled[0] || executed_is_limited(process);
		if (*counted || (process->executed.known && !process->target.closed) ||
		    process_presence(process) != REGION_MAPPED_NO)
			return true;
	}
	books_each_run(run, books)
	{
		if (program_run_pid(run) != pid || (had && !run->life.declined))
			continue;
		*counted = *counted || run->life.declined;
		return true;
	}
	return false;
}

static void count_unprofiled(struct unprofiled *unprofiled, struct unfollowed_child *child)
{
	char text[TARGET_UNPROFILED_BYTES];

	child->done = true;
	snprintf(text, sizeof(text), "%s (pid %d)" EXECUTED_UNSEEN "%s", child->program, (int)child->pid,
	    child->why ? child->why : "it has not loaded " PRELOAD_LIBRARY_NAME);
	unprofiled_note_executed(unprofiled, text);
}

static void inspect(struct unfollowed_child *child)
{
	char path[TARGET_NAME_BYTES];

	child->why = executed_obstacle(child->pid);
	if (proc_read_exe(child->pid, path, sizeof(path)) <= 0)
		return;
	proc_strip_deleted(path);
	snprintf(child->program, sizeof(child->program), "%.127s", path);
}

/* A child of a process that is not attached. Its program needs some time to load the library and come to us,
 * and so does each program that it executes later. */
static void judge(const struct look *look, struct unfollowed_child *child)
{
	if (child->done)
		return;
	if (is_accounted_for(look->run->books, child->pid, &child->done)) {
		child->met_ns = look->now_ns;
		child->looks = 0;
		child->why = NULL;
		return;
	}
	const bool old = look->now_ns - child->met_ns >= EXECUTED_LOADING_NS;
	if (++child->looks != 2 && !old)
		return;
	inspect(child);
	if (old && child->program[0] &&
	    !is_accounted_for(look->run->books, child->pid, &child->done)) /* meanwhile */
		count_unprofiled(look->unprofiled, child);
}

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
	struct unfollowed_child *child = find_seen(u, pid, birth.ticks);
	if (!child && array_reserve(&u->seen, &u->seen_capacity, u->seen_count + 1, sizeof(*u->seen)) == 0) {
		child = &u->seen[u->seen_count++];
		*child = (struct unfollowed_child){.pid = pid, .ticks = birth.ticks, .met_ns = look->now_ns};
		if (look->run->origin.attached_pid)
			note(look->run, pid, NULL);
	}
	if (child && !look->run->origin.attached_pid)
		judge(look, child);
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

/* A process that has ended makes room for another. If it had an obstacle, nothing of it can come any more. */
static void forget_ended(struct program_run *run, struct unprofiled *unprofiled)
{
	struct unfollowed *u = &run->unfollowed;

	for (size_t i = u->seen_count; i-- > 0;) {
		struct unfollowed_child *child = &u->seen[i];

		if (thread_facts_birth(child->pid).ticks == child->ticks)
			continue;
		if (!child->done && child->why && child->program[0] && !is_in_books(run->books, child->pid))
			count_unprofiled(unprofiled, child);
		*child = u->seen[--u->seen_count];
	}
}

/* The stack of a program run that was not attached to is where its own process has it, until that has ended
 * or executed another program. */
static void find_stack(struct program_run *run)
{
	struct unfollowed *u = &run->unfollowed;
	const struct process *first = run->places.at[0];

	if (!u->stack_start && first && !first->target.closed && first->target.pidfd >= 0 &&
	    process_presence(first) == REGION_MAPPED)
		u->stack_start = thread_facts_birth(first->target.pid).stack_start;
}

static void look(struct program_run *run, struct unprofiled *unprofiled, uint64_t now_ns)
{
	struct look all = {.run = run, .unprofiled = unprofiled, .now_ns = now_ns};

	find_stack(run);
	forget_ended(run, unprofiled);
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

void unprofiled_children_record(
    struct table *births, const struct table *processes, const struct record *record)
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

void unprofiled_children_tend(
    struct program_run *run, struct unprofiled *unprofiled, bool by_records, bool verbose, uint64_t now_ns)
{
	/* 1/100 of a processor for each program run, and 20 ms in advance */
	static const struct throttle_rate rate = {.burst = 20 * 1000000, .units = 1, .step_ns = 100};
	struct unfollowed *u = &run->unfollowed;
	const bool attached = run->origin.attached_pid != 0;

	if (!run->origin.offered && !(attached && by_records) && throttle_allows(&u->work, &rate, now_ns)) {
		const uint64_t begin_cpu_ns = clock_thread_cpu_ns();

		look(run, unprofiled, now_ns);
		throttle_spend(&u->work, clock_thread_cpu_ns() - begin_cpu_ns);
	}
	if (attached && u->count != u->said && verbose)
		log_line("pid %d: its child executed %s, which is not followed (%" PRIu64 " in all)",
		    (int)run->origin.attached_pid, u->last, u->count);
	u->said = u->count;
}

void unprofiled_children_note_declined(const struct books *books, pid_t pid)
{
	books_each_run(run, books)
	{
		for (size_t i = 0; i < run->unfollowed.seen_count; i++)
			if (run->unfollowed.seen[i].pid == pid)
				run->unfollowed.seen[i].done = true;
	}
}

void unprofiled_children_end(struct program_run *run, struct table *births)
{
	for (size_t i = births->count; i-- > 0;)
		if (births->entries[i].item == run)
			table_remove(births, births->entries[i].key, run);
	free(run->unfollowed.seen);
	run->unfollowed = (struct unfollowed){0};
}

/* ---- containers */

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

bool unprofiled_is_container_starter(const char *name, const char *arguments, size_t bytes)
{
	static const char *const starters[] = {"runc", "crun", "youki", "runsc", "podman", "docker",
	    "nerdctl", "ctr", "crictl", "buildah", NULL};
	/* Not `build`, `images` or `ps`. */
	static const char *const verbs[] = {
	    "run", "exec", "start", "create", "restart", "restore", "compose", "play", "kube", NULL};
	bool starts = false;

	if (!is_one_of(name, starters))
		return false;
	for (const char *at = arguments; at < arguments + bytes; at += strlen(at) + 1) {
		starts = starts || (at != arguments && is_one_of(at, verbs));
		if (strstr(at, "LD_PRELOAD"))
			return false;
	}
	return starts;
}

bool unprofiled_warn_of_container(pid_t pid)
{
	char name[PROC_COMM_BYTES], arguments[COMMAND_LINE_BYTES], text[LOG_LINE_BYTES];
	ssize_t length;

	proc_read_comm(pid, name);
	length = proc_read(pid, "cmdline", arguments, sizeof(arguments));
	if (length <= 0 || !unprofiled_is_container_starter(name, arguments, (size_t)length))
		return false;
	snprintf(text, sizeof(text),
	    "%s (pid %d): programs in containers have an environment of their own\n"
	    "and are not profiled by this; as root: heaptap attach PID --force",
	    name, (int)pid);
	log_lines(text);
	return true;
}

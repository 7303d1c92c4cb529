/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/process_life.h"

#include "pprof/text/clock.h"
#include "sampler/books/adoption.h"
#include "sampler/books/drain.h"
#include "sampler/books/executed.h"
#include "sampler/books/program_run.h"
#include "sampler/books/unprofiled.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/linux/thread_facts.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct books *books_of(const struct registry *registry)
{
	return &registry->setup.intake->books;
}

/* ---- the beginning */

static void watch_end(struct registry *registry, const struct process *process)
{
	if (process->target.pidfd < 0 || epoll_set_add(registry->setup.epoll_fd, process->target.pidfd) != 0)
		registry->lives.unwatched = true;
}

/* Whether there is a program run of the program that this process executed, or of a later one. (A program
 * run that declined its region has left already; COMMAND's reason is kept.) */
static bool has_successor(const struct registry *registry, const struct process *process)
{
	books_each_run(run, books_of(registry)) if (process->target.pid &&
	    registry_is_older(process->run, run) && !region_declined_text(run->region) &&
	    program_run_pid(run) == process->target.pid) return true;
	return false;
}

/* Why the program that the process has executed does not use its region, which has been counted already;
 * NULL if it does, or if nothing is known of it. */
static const char *declined_before(const struct registry *registry, const struct process *process)
{
	books_each_run(run, books_of(registry)) if (run->life.declined &&
	    registry_is_older(process->run, run) && process->target.pid &&
	    program_run_pid(run) == process->target.pid) return run->life.declined;
	return NULL;
}

void process_life_watch(struct registry *registry, struct process *process)
{
	const struct registry_setup *setup = &registry->setup;

	if (process->life.watched)
		return;
	process->life.watched = true;
	registry->lives.arrivals++;
	process->target.command = launch_is_command(setup->launch, process->target.pid);
	if (process->target.command)
		unprofiled_note_command(&registry->unprofiled, process->run->life.unchosen);
	if (!process->run->life.unchosen) {
		executed_begin(process);
		/* Now: when the process is closed, that program run may be gone. */
		process->life.followed = process->target.unprofiled[0] && has_successor(registry, process);
		if (process->life.followed)
			process->target.unprofiled[0] = '\0';
		executed_note_declined(process, declined_before(registry, process));
		if (setup->verbosity >= 0 && !registry->lives.containers_said &&
		    !process->run->origin.attached_pid)
			registry->lives.containers_said = unprofiled_warn_of_container(process->target.pid);
		setup->listener.watched(setup->listener.context, &process->target);
	}
	watch_end(registry, process);
}

void process_life_know_command(struct registry *registry)
{
	struct process *process;
	const pid_t pid = registry->setup.launch->pid;
	size_t cursor = 0;

	while ((process = table_next(&books_of(registry)->processes, (uint64_t)pid, &cursor))) {
		if (!process->life.watched)
			continue;
		process->target.command = true;
		unprofiled_note_command(&registry->unprofiled, process->run->life.unchosen);
	}
	books_each_run(run, books_of(registry)) if (run->life.declined && program_run_pid(run) == pid)
	    unprofiled_note_command_declined(&registry->unprofiled, run->life.declined);
}

/* ---- the end */

void process_life_close(struct registry *registry, struct process *process, enum target_end end, int status)
{
	const struct registry_setup *setup = &registry->setup;

	if (process->target.closed)
		return;
	/* Its samples, and its end, may have come before the first look at its program run. */
	process_life_watch(registry, process);
	registry_take_claims(registry);
	if (process->run->life.state == RUN_ADOPTING)
		adoption_end(setup->intake, process->run);
	target_close(&process->target, end, status);
	if (process->target.pidfd >= 0)
		epoll_set_remove(setup->epoll_fd, process->target.pidfd);
	if (end == TARGET_EXEC)
		backend_fallback_executed(&registry->fallback, process->run);
	if (process->run->life.unchosen) {
		unprofiled_note_unchosen(&registry->unprofiled, process->target.title);
		process_life_release(registry, process);
		return;
	}
	process_inherit(process);
	setup->listener.closed(setup->listener.context, &process->target);
}

/* Place 0 is kept as long as its program run: children may still need stacks that they inherited from it. */
void process_life_release(struct registry *registry, struct process *process)
{
	(void)registry;
	process->life.released = true;
	region_release_place_of(process->run->region, process->place, process->generation);
	if (process->place != 0)
		program_run_free_process(process);
}

bool process_life_has_ended(struct registry *registry, struct process *process)
{
	if (program_run_look_again(process) && process->life.watched) {
		executed_begin(process);
		watch_end(registry, process);
	}
	return process->target.pidfd < 0 ? !process->unsure : target_has_ended(&process->target);
}

/* Unless the program run of that program is just becoming ready. */
void process_life_close_unseen(struct registry *registry, struct process *process)
{
	struct target *target = &process->target;

	registry_take_claims(registry);
	if (has_successor(registry, process))
		target->unprofiled[0] = '\0';
	char *reason = strstr(target->unprofiled, EXECUTED_UNSEEN);
	const char *declined = process->executed.declined;
	if (target->command && registry->unprofiled.command_declined_text)
		declined = registry->unprofiled.command_declined_text;
	if (reason && declined)
		snprintf(reason, (size_t)(target->unprofiled + sizeof(target->unprofiled) - reason),
		    EXECUTED_UNSEEN "%s", declined);
	if (reason && !process->executed.declined)
		unprofiled_note_executed(&registry->unprofiled, target->unprofiled);
	process_life_close(registry, process, TARGET_EXEC, 0);
}

void process_life_close_executed(
    struct registry *registry, pid_t pid, const struct program_run *by, bool *drained)
{
	struct process *process;
	const struct program_run *read = NULL;

	for (size_t cursor = 0;
	     (process = table_next(&books_of(registry)->processes, (uint64_t)pid, &cursor));) {
		if (process->target.closed || !registry_is_older(process->run, by))
			continue;
		process->target.unprofiled[0] = '\0';
		if (*drained || read == process->run) {
			process_life_close(registry, process, TARGET_EXEC, 0);
		} else {
			read = process->run;
			drain_run(registry, process->run);
			*drained = registry->setup.probe->rings != NULL;
		}
		cursor = 0; /* the table may have changed */
	}
}

/* True while the program that this process has executed may still be loading the library. The process
 * executed it before the process was found. The run of that program, when it appears, closes this process.
 * False if that run is there already: what a child leaves in its parent's run may be found later. */
static bool is_loading(const struct registry *registry, const struct process *process, uint64_t now)
{
	const struct target *target = &process->target;

	return target->unprofiled[0] && target->pidfd < 0 &&
	    now <= process->executed.noted_ns + EXECUTED_LOADING_NS &&
	    thread_facts_read(target->pid).pid == target->pid && !has_successor(registry, process);
}

/* Asks for all processes in one call, for a daemon has hundreds. NULL: no memory; for free(). A pidfd that is
 * readable may have ended (or is none); a pidfd that is not has not ended. */
static struct pollfd *poll_all(const struct table *processes)
{
	struct pollfd *fds = calloc(processes->count + 1, sizeof(*fds));

	for (size_t i = 0; fds && i < processes->count; i++) {
		const struct process *process = processes->entries[i].item;

		fds[i] = (struct pollfd){process->target.closed ? -1 : process->target.pidfd, POLLIN, 0};
	}
	if (fds && poll(fds, processes->count, 0) < 0) {
		free(fds);
		return NULL;
	}
	return fds;
}

bool process_life_note_ended(struct registry *registry)
{
	const struct table *processes = &books_of(registry)->processes;
	const size_t count = processes->count;
	const uint64_t now = clock_now_ns();
	struct pollfd *fds = poll_all(processes);
	bool some = false;

	/* By number, as poll_all() did. From behind: a process whose pid was wrong becomes the last. */
	for (size_t i = processes->count; i-- > 0;) {
		struct process *process = processes->entries[i].item;
		const bool runs = fds && i < count && !process->unsure && process->target.pidfd >= 0 &&
		    fds[i].fd == process->target.pidfd && !fds[i].revents;

		process->life.ended = !process->target.closed && !runs &&
		    process_life_has_ended(registry, process) && !is_loading(registry, process, now);
		some = some || process->life.ended;
	}
	free(fds);
	return some;
}

static void close_ended(struct registry *registry, struct process *process)
{
	const struct launch *launch = registry->setup.launch;

	process_life_watch(registry, process);
	/* COMMAND's own end waits for the front, which knows its status. */
	if (process->target.command && !launch->front_gone && !launch->ended)
		return;
	/* The drain after the end was noted may have told of the exec. */
	if (is_loading(registry, process, clock_now_ns()))
		return;
	if (process->target.unprofiled[0])
		process_life_close_unseen(registry, process);
	else if (process->life.followed)
		process_life_close(registry, process, TARGET_EXEC, 0);
	else if (process->target.command && launch->status_known)
		process_life_close(registry, process, TARGET_EXITED, launch->status);
	else
		process_life_close(
		    registry, process, process->target.pidfd < 0 ? TARGET_UNSEEN : TARGET_GONE, 0);
}

void process_life_close_ended(struct registry *registry)
{
	books_each_process (process, books_of(registry))
		if (process->life.ended && !process->target.closed)
			close_ended(registry, process);
}

/* ---- all processes */

const struct process *process_life_find(const struct registry *registry, pid_t pid)
{
	const struct process *process;
	size_t cursor = 0;

	while ((process = table_next(&books_of(registry)->processes, (uint64_t)pid, &cursor)))
		if (process->life.watched && !process->target.closed && process->target.pidfd >= 0 &&
		    !process->run->life.unchosen)
			return process;
	return NULL;
}

size_t process_life_running(const struct registry *registry)
{
	size_t count = 0;

	/* What a process has executed has a program run of its own, or will have, or is not profiled. */
	books_each_process (process, books_of(registry))
		count += process->life.watched && !process->target.closed && !process->target.unprofiled[0] &&
		    !process->run->life.unchosen;
	return count;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/core.h"

#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "sampler/core/poll_interval.h"
#include "sampler/linux/epoll_set.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

/* TICK_NS: without a heap, the books of an ended process are closed so late at most. (Rings wake us when
 * they fill.) */
enum { TICK_NS = 20 * 1000000, EVENTS_AT_ONCE = 64 };

_Static_assert(
    (int)SNAPSHOT_ASKERS >= (int)CONTROL_SERVER_CLIENTS, "each client can wait for the same snapshot");

/* ---- answers to clients of the control socket */

/* For struct scheduler_setup: a snapshot that `asker` waits for is on disk, or could not be made (-errno). */
static void answer(void *context, uint64_t asker, pid_t pid, const char *path, int error)
{
	const struct core *core = context;
	char absolute[2 * PATH_MAX];

	if (error) {
		control_server_failed(core->server, asker, pid, error);
		return;
	}
	const bool relative = path[0] != '/' && core->working_folder[0];
	snprintf(absolute, sizeof(absolute), "%s%s%s", relative ? core->working_folder : "",
	    relative ? "/" : "", path);
	control_server_written(core->server, asker, pid, absolute);
}

/* The same for a profile as shared memory: a descriptor, which is the callee's, or -errno. */
static void give(void *context, uint64_t asker, pid_t pid, int fd)
{
	const struct core *core = context;

	if (fd < 0)
		control_server_failed(core->server, asker, pid, fd);
	else
		control_server_profiled(core->server, asker, pid, fd);
}

/* ---- beginning and end */

struct core core_of(const struct core_handlers *handlers)
{
	return (struct core){.handlers = handlers, .epoll_fd = -1, .signal_fd = -1};
}

int core_open(struct core *core, enum signals_role role, int snapshot_signal)
{
	core->signal_fd = signals_open(role, snapshot_signal);
	core->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (core->signal_fd < 0 || core->epoll_fd < 0)
		return -errno;
	if (!getcwd(core->working_folder, sizeof(core->working_folder)))
		core->working_folder[0] = '\0';
	core->cpu.giver = (struct in_memory_giver){give, core};
	core->modules = modules_new(0);
	return core->modules ? epoll_set_add(core->epoll_fd, core->signal_fd) : -ENOMEM;
}

int core_open_scheduler(struct core *core, struct scheduler_setup setup)
{
	setup.settings = &core->settings;
	setup.output = &core->output;
	setup.answer = answer;
	setup.context = core;
	setup.memory = core->cpu.giver;
	core->scheduler = scheduler_new(&setup);
	return core->scheduler ? 0 : -ENOMEM;
}

int core_open_heap(struct core *core, struct event_source *events, bool offered)
{
	const struct heap_capture_setup setup = {
	    .launch = &core->launch,
	    .modules = core->modules,
	    .memory = &core->memory,
	    .epoll_fd = core->epoll_fd,
	    .scheduler = core->scheduler,
	    .events = events,
	    .offered = offered,
	};

	return heap_capture_open(&core->heap, &setup);
}

void core_close(struct core *core)
{
	scheduler_free(core->scheduler);
	event_registry_free(core->events);
	if (core->has_heap)
		heap_capture_close(&core->heap);
	if (core->modules)
		modules_free(core->modules);
	output_fini(&core->output);
	if (core->signal_fd >= 0)
		close(core->signal_fd);
	if (core->epoll_fd >= 0)
		close(core->epoll_fd);
}

/* ---- the loop */

static void reap(struct core *core)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!cpu_profiles_reap(&core->cpu, pid, status) &&
		    !(core->handlers->reap && core->handlers->reap(core, pid, status)))
			scheduler_reap(core->scheduler, pid, status);
}

void core_read_signals(struct core *core)
{
	for (int number; (number = signals_read(core->signal_fd)) != 0;)
		if (number != SIGCHLD)
			core->handlers->signal(core, number);
	reap(core);
}

void core_find_processes(struct core *core)
{
	if (core->has_heap && heap_capture_look(&core->heap, false))
		scheduler_hurry(core->scheduler);
	event_registry_drain(core->events);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Reads what processes have written into shared memory, writes snapshots that are due, ends CPU profiles.
 * Returns the time until the next look, at most. ended: a process may have ended. */
static uint64_t look(struct core *core, bool ended)
{
	const bool looks =
	    core->has_heap && (core->handlers->reads_at_once || ended || clock_now_ns() >= core->heap_due_ns);

	if (looks && heap_capture_look(&core->heap, ended))
		scheduler_hurry(core->scheduler);
	event_registry_tend(core->events, clock_now_ns());
	uint64_t due_ns = scheduler_tend(core->scheduler, clock_now_ns());
	const uint64_t now_ns = clock_now_ns();
	due_ns = least(due_ns, cpu_profiles_tend(&core->cpu, now_ns));
	if (looks)
		core->heap_due_ns = now_ns + poll_interval_timeout_ns(&core->heap.pace, now_ns);
	if (!core->has_heap)
		return least(due_ns, TICK_NS);
	return least(due_ns, core->heap_due_ns > now_ns ? core->heap_due_ns - now_ns : 0);
}

/* True: a process may have ended. */
static bool on_event(struct core *core, int fd)
{
	if (fd == core->signal_fd)
		core_read_signals(core);
	else if (!control_server_event(core->server, fd) &&
	    !(core->has_heap && heap_capture_event(&core->heap, fd)))
		return core->handlers->event(core, fd);
	return false;
}

int core_run(struct core *core)
{
	uint64_t timeout_ns = 0;

	do {
		struct epoll_event events[EVENTS_AT_ONCE];
		const int count = poll_interval_wait(core->epoll_fd, events, EVENTS_AT_ONCE, timeout_ns);
		bool ended = false;

		if (count < 0 && errno != EINTR) {
			log_line("the sampler cannot wait for events: %s", strerror(errno));
			return EXIT_FAILURE;
		}
		for (int i = 0; i < count; i++)
			ended = on_event(core, events[i].data.fd) || ended;
		const uint64_t before_ns =
		    core->handlers->before_look ? core->handlers->before_look(core) : UINT64_MAX;
		timeout_ns = least(before_ns, look(core, ended || core->launch.ended));
		timeout_ns = least(timeout_ns, core->handlers->after_look(core));
	} while (!core->handlers->is_over(core));
	return EXIT_SUCCESS;
}

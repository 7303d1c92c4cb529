/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of a sampler: what `heaptap record` and `heaptap daemon` have in common. Each command has one
 * core, and adds its own part by struct core_handlers: record adds COMMAND and the front process, the daemon
 * adds the finder, the rules and the store.
 *
 * The main loop is one thread with one epoll set:
 *
 *   signals        SIGCHLD, and what signals.h says of the command's role
 *   control        a client of the control socket (requests.h)
 *   rings, pool    stacks that the kernel has copied; a process has claimed a region
 *   the command's  pidfds, the front, notices, attachers: core_handlers.event
 *   the look       what causes no event: what processes wrote into regions, rings that are less than an
 *                  eighth full, snapshots that are due
 */
#ifndef SAMPLER_CORE_CORE_H
#define SAMPLER_CORE_CORE_H

#include "sampler/books/event_registry.h"
#include "sampler/core/control_server.h"
#include "sampler/core/cpu_profile.h"
#include "sampler/core/heap_capture.h"
#include "sampler/core/signals.h"
#include "sampler/intake/launch.h"
#include "sampler/write/output.h"
#include "sampler/write/scheduler.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct core;

struct core_handlers {
	void (*signal)(struct core *core, int number); /* never SIGCHLD */
	/* A descriptor that the core does not know is readable. True: a process may have ended. */
	bool (*event)(struct core *core, int fd);
	/* True: the child that has ended was the command's own. May be NULL. */
	bool (*reap)(struct core *core, pid_t child, int status);
	/* The command's own part of each look, before and after the core's. Both return the longest time to
	 * the next look, in nanoseconds. before_look may be NULL. */
	uint64_t (*before_look)(struct core *core);
	uint64_t (*after_look)(struct core *core);
	bool reads_at_once; /* each look reads the regions; false: when they are due */
	bool (*is_over)(struct core *core);
	/* Writes the list for clients of the control socket. */
	void (*list)(struct core *core, struct control_list_writer *writer);
	/* True: nothing is sampled, and requests are refused. May be NULL. */
	bool (*is_off)(const struct core *core);
	/* Does the request mean a process that is profiled, but has no books because it has taken no sample?
	 * May be NULL. */
	bool (*is_unsampled)(const struct core *core, const struct control_request *request);
};

struct core {
	const struct core_handlers *handlers;
	void *command; /* the struct of the command, for the handlers */

	struct snapshot_settings settings;
	struct output output;
	struct modules *modules;
	struct memory_bound memory;
	struct scheduler *scheduler;
	struct launch launch; /* COMMAND; the daemon has none */
	struct heap_capture heap;
	bool has_heap;                 /* false: only events are sampled */
	struct event_registry *events; /* NULL: none */
	uint64_t heap_due_ns;          /* when the regions are looked at next */
	int epoll_fd, signal_fd;

	/* Of requests.h. */
	struct control_server *server; /* NULL: there is no control socket */
	struct cpu_profiles cpu;
	char cpu_file_prefix[PATH_MAX];
	char working_folder[PATH_MAX]; /* makes relative paths of profiles absolute */
	pid_t front;                   /* its pid stands for the whole session; 0: there is no front */
};

/* Nothing is open yet. */
struct core core_of(const struct core_handlers *handlers);

/* Opens the signals, the epoll set and the modules. 0 or -errno; call core_close() in both cases. */
int core_open(struct core *core, enum signals_role role, int snapshot_signal);

/* Makes the scheduler. core->settings and core->output are set; the core fills in its own part of `setup`.
 * 0 or -ENOMEM. */
int core_open_scheduler(struct core *core, struct scheduler_setup setup);

/* After heap_capture_probe(). events: NULL if none are sampled. offered: see heap_capture_setup. 0 or
 * -errno. */
int core_open_heap(struct core *core, struct event_source *events, bool offered);

/* Frees everything that core_open...() has opened. */
void core_close(struct core *core);

/* Runs the main loop until it is over. Returns the exit status. */
int core_run(struct core *core);

/* Handles the signals that have arrived, and waits for the children that have ended. */
void core_read_signals(struct core *core);

/* Finds the processes that have started since the last look: a request means these too. */
void core_find_processes(struct core *core);

#endif

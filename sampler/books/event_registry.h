/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every process sampled for events, from the first record in the counters' rings to the last profile.
 *
 * A sample has its stack in two pieces: the kernel's side as the kernel's own call chain, the user's as
 * registers and a copy of the stack, to be unwound as the heap's samples are.
 */
#ifndef SAMPLER_BOOKS_EVENT_REGISTRY_H
#define SAMPLER_BOOKS_EVENT_REGISTRY_H

#include "sampler/books/event_process.h"
#include "sampler/intake/launch.h"
#include "sampler/perf/counters.h"

struct event_registry_setup {
	const struct event *events; /* these are borrowed */
	size_t event_count;
	uint32_t stack_bytes;
	bool by_thread;
	struct modules *modules;
	struct memory_bound *memory;
	int verbosity;
	int epoll_fd; /* the rings are added here */
	const struct launch *launch;
	struct target_listener listener;
};

struct event_registry {
	struct event_registry_setup setup;
	struct counters *counters;
	struct event_processes subjects;
	struct unwind_frame *frames;
	uint64_t bad;     /* malformed records */
	uint64_t sampled; /* subjects with at least one sample */
	uint64_t throttled[EVENTS_MAX];
	struct event_row sum[EVENTS_MAX]; /* of all subjects so far */
	uint64_t sweep_ns;
	bool stopped; /* sampling has been stopped */
};

/* three samples; the memory that the heap's rings leave an unprivileged user */
enum { EVENT_RING_BYTES_LEAST = 128 << 10 };

/* NULL with *error = -errno; 0: no events were requested. */
struct event_registry *event_registry_new(const struct event_registry_setup *setup, int *error);
void event_registry_free(struct event_registry *registry);

/* To all functions below but those that attach, NULL is a registry without events. */

/* COMMAND, before its exec. Returns 0 or -errno. */
int event_registry_attach_command(struct event_registry *registry, pid_t command);

/* COMMAND could not be executed. */
void event_registry_cancel(struct event_registry *registry, pid_t command);

/* Attaches to a running process, which is treated as COMMAND. Returns 0 or -errno. */
int event_registry_attach_running(struct event_registry *registry, pid_t pid);

/* Reads everything that is in the rings. */
void event_registry_drain(struct event_registry *registry);

/* Reads the rings and closes processes that have ended. */
void event_registry_tend(struct event_registry *registry, uint64_t now_ns);

/* The part of event_registry_tend() that closes processes. Looks at all, or only at those of which a
 * thread has ended since the last look at all. */
void event_registry_sweep(struct event_registry *registry, bool all);

/* Stops sampling: closes all processes, although they live on. */
void event_registry_stop(struct event_registry *registry);

/* The live subject with that pid, or NULL. */
struct event_process *event_registry_find(const struct event_registry *registry, pid_t pid);

/* The last profile of a closed subject was written. */
void event_registry_release(struct event_registry *registry, struct event_process *process);

/* settled: false while COMMAND has ended and its end is not handled yet. empty: no process is left. */
bool event_registry_settled(const struct event_registry *registry);
bool event_registry_empty(const struct event_registry *registry);

#endif

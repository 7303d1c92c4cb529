/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: every snapshot of the session, from the reason for it to the files on disk.
 *
 *   interval        scheduler_tend, when a process' is due
 *   signal, API     scheduler_tend, when a word in the shared memory has changed
 *   SIGUSR1 to us   scheduler_want_all
 *   heaptap snapshot   scheduler_ask
 *   end             scheduler_close, once per process
 *
 * Taking: live_scan, then drain, then books and live_scan together, then to the writer, whose forked child
 * has the rest of the day. A periodic snapshot is only taken when the writer has a child to spare.
 */
#ifndef SAMPLER_SNAPSHOT_SCHEDULER_H
#define SAMPLER_SNAPSHOT_SCHEDULER_H

#include "sampler/snapshot/event_scheduler.h"
#include "sampler/snapshot/output.h"
#include "sampler/snapshot/snapshot_settings.h"
#include "sampler/heap/registry.h"

#include <sys/types.h>

struct scheduler;

struct scheduler_setup {
	const struct snapshot_settings *settings; /* these three are borrowed */
	struct registry *registry;
	struct output *output;
	/* A line about the session for every profile. */
	void (*describe)(void *context, char *text, size_t text_bytes);
	/* A snapshot that `asker` waits for is complete, or cannot be written (-errno). */
	void (*answer)(void *context, uint64_t asker, pid_t pid, const char *path, int error);
	struct event_scheduler *events; /* borrowed; takes its own with each numbered one; NULL: none */
	void *context;
};

struct scheduler *scheduler_new(const struct scheduler_setup *setup);
void scheduler_free(struct scheduler *scheduler);

/* Does what is due. Returns when to come again at the latest, in ns from now. */
uint64_t scheduler_tend(struct scheduler *scheduler, uint64_t now_ns, uint64_t period_bytes);

/* Snapshots of all live processes, or of one: returns how many processes that means (0: not ours). asker: see
 * control.h, 0 for none. */
uint32_t scheduler_want_all(struct scheduler *scheduler, const char *cause, uint64_t asker);
uint32_t scheduler_ask(struct scheduler *scheduler, pid_t pid, uint64_t asker);

/* The process has ended, its books are closed: the exit profile. Ends in registry_release. */
void scheduler_close(struct scheduler *scheduler, struct process *process);

/* A child of the sampler has ended. */
void scheduler_reap(struct scheduler *scheduler, pid_t pid, int status);

/* Profiles of ended processes that were written without a word, since there are so many. */
uint64_t scheduler_unsaid(const struct scheduler *scheduler);

/* Profiles of ended processes: how many are on disk (or given up), and of how many. */
void scheduler_progress(const struct scheduler *scheduler, uint64_t *written, uint64_t *ended);

/* True when everything that has ended is on disk. */
bool scheduler_settled(const struct scheduler *scheduler);

#endif

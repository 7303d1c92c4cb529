/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subjects: the processes that events are sampled in, as the kernel's records tell of them. Whether our
 * library is in one does not matter here; a process that is also profiled for its heap is a subject and a
 * `struct process`.
 *
 *   FORK         a new subject, with its creator's maps
 *   COMM, exec   the subject ends and another one begins under the same pid: a program of its own, with its
 *                own profiles
 *   MMAP2        a range of its maps
 *   EXIT         a thread has ended: perhaps the last one
 *
 * Records that were lost make a subject late, never wrong: what is not known is read from /proc while it is
 * there.
 */
#ifndef SAMPLER_EVENTS_EVENT_PROCESS_H
#define SAMPLER_EVENTS_EVENT_PROCESS_H

#include "sampler/perf/event.h"
#include "sampler/events/event_book.h"
#include "sampler/unwind/maps.h"
#include "sampler/heap/process.h"
#include "sampler/unwind/stacks.h"
#include "sampler/unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct event_process {
	struct event_process *next;
	pid_t pid;
	int pidfd;   /* -1: not looked for yet, or gone before we could */
	bool looked; /* for its pidfd and name */
	bool exits;  /* a thread of it has ended since the last look */
	/* it has ended, or executes another program; waits for its last profile to be written */
	bool closed;
	enum process_end end;
	int status;     /* wait status, PROCESS_EXITED */
	char title[64]; /* as struct process has it */
	char name[PROCESS_NAME_BYTES];
	char comm[16];
	uint64_t first_ns, maps_read_ns, maps_retry_ns;
	struct maps *maps;
	struct stacks *stacks;
	struct event_book *books[EVENTS_MAX]; /* NULL until its first sample */
	uint64_t outcome[EVENTS_MAX][UNWIND_OUTCOMES];
	uint64_t no_room; /* samples that there was no memory for */
	struct snapshot_series *series;
	struct threads *threads; /* NULL: nobody wants their names */
};

struct event_processes {
	struct event_process *list;
	struct modules *modules; /* borrowed */
	size_t count;
};

/* The one that lives under that pid, or NULL. */
struct event_process *event_processes_find(const struct event_processes *subjects, pid_t pid);

/* A new one that begins at first_ns, with the maps of `parent` if there is one; NULL: out of memory. */
struct event_process *event_processes_add(
    struct event_processes *subjects, pid_t pid, const struct event_process *parent, uint64_t first_ns);
void event_processes_remove(struct event_processes *subjects, struct event_process *subject);
void event_processes_fini(struct event_processes *subjects);

/* Reads its maps from /proc, at most every `every_ns`. True if they were read. */
bool event_process_read_maps(struct event_process *subject, uint64_t now_ns, uint64_t every_ns);

/* Finds out who it is, once, while it lives. */
void event_process_look(struct event_process *subject);

/* Has it ended? Asks the kernel; if that has no descriptor left to ask with, by its number. */
bool event_process_has_ended(struct event_process *subject);

bool event_process_has_samples(const struct event_process *subject);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subjects: the processes that events are sampled in, as the kernel's records show them. Our library need not
 * be loaded; a process whose heap is also profiled is both a subject and a `struct process`.
 *
 *   FORK         a new subject, with its creator's maps
 *   COMM, exec   the subject ends and a new one begins under the same pid: another program with its own
 *                profiles
 *   MMAP2        a range of its maps
 *   EXIT         a thread has ended: perhaps the last one
 *
 * Lost records make a subject late, never wrong: missing facts are read from /proc while the process lives.
 */
#ifndef SAMPLER_BOOKS_EVENT_PROCESS_H
#define SAMPLER_BOOKS_EVENT_PROCESS_H

#include "sampler/intake/memory_bound.h"
#include "sampler/intake/table.h"
#include "sampler/intake/target.h"
#include "sampler/perf/event.h"
#include "sampler/unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The book of one event in one process: what its samples stand for, by stack and, if asked for, by thread. */
struct event_book;

struct event_row {
	uint32_t stack, tid; /* tid 0: not told apart */
	uint64_t samples;
	uint64_t value; /* what the samples stand for: events, or ns of a clock */
	uint64_t bytes; /* for faults: bytes of the pages that were added */
};

/* Adds up samples, value and bytes. */
void event_row_add(struct event_row *sum, const struct event_row *row);

struct event_book *event_book_new(void);       /* NULL: out of memory */
void event_book_free(struct event_book *book); /* NULL is fine */

/* Adds row->samples, value and bytes to the row with its stack and tid. False when memory has run out or the
 * book is full. */
bool event_book_add(struct event_book *book, const struct event_row *row);

/* A full book refuses rows for new stacks and threads. */
void event_book_set_full(struct event_book *book, bool full);

uint64_t event_book_bytes(const struct event_book *book); /* memory that the book takes */

size_t event_book_count(const struct event_book *book);
const struct event_row *event_book_rows(const struct event_book *book);

/* The sum of all rows; its stack and tid are 0. */
struct event_row event_book_total(const struct event_book *book);

struct event_process {
	struct target target; /* first */
	struct event_process *next;
	bool looked; /* pidfd and name were looked up */
	bool exits;  /* a thread has ended since the last look at all processes */
	char comm[16];
	struct event_book *books[EVENTS_MAX]; /* NULL until its first sample */
	uint64_t outcome[EVENTS_MAX][UNWIND_COUNTS];
	uint64_t no_room;          /* samples without memory for them */
	struct memory_share share; /* of the bound: stacks and books */
};

struct event_processes {
	struct event_process *list;
	struct table by_pid;
	struct modules *modules;     /* borrowed */
	struct memory_bound *memory; /* borrowed */
	size_t count;
};

/* The live subject with that pid, or NULL. */
struct event_process *event_processes_find(const struct event_processes *subjects, pid_t pid);

/* Adds a subject that begins at first_ns, with a copy of the maps of `parent` unless that is NULL. NULL: out
 * of memory. */
struct event_process *event_processes_add(
    struct event_processes *subjects, pid_t pid, const struct event_process *parent, uint64_t first_ns);
void event_processes_remove(struct event_processes *subjects, struct event_process *subject);
void event_processes_fini(struct event_processes *subjects);

/* Looks up the pidfd and the name, once, while the process lives. */
void event_process_look(struct event_process *subject);

/* Keep stacks and books within the memory that there is for all: before a sample is entered, and after it
 * (event_process_weigh). */
void event_process_look_for_room(struct event_process *subject, const struct memory_bound *memory);
void event_process_weigh(struct event_process *subject, struct memory_bound *memory);

bool event_process_has_samples(const struct event_process *subject);

#endif

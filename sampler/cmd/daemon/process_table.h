/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every process that the daemon has looked at, and what has come of the look. An entry is for one program in
 * one process: it has the pid, the time of the fork, and the address where the stack begins, which each exec
 * changes. So a process that is not profiled is looked at once; to know it again costs one read.
 */
#ifndef SAMPLER_CMD_DAEMON_PROCESS_TABLE_H
#define SAMPLER_CMD_DAEMON_PROCESS_TABLE_H

#include "sampler/linux/thread_facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum process_entry_state {
	PROCESS_NEW,             /* not looked at yet */
	PROCESS_NOT_YET,         /* offers no region so far; it may be loading the library: look again */
	PROCESS_WITHOUT_LIBRARY, /* offers no region */
	PROCESS_REFUSED,         /* not profiled, for a reason */
	PROCESS_ATTACHING,       /* is being attached to */
	PROCESS_PROFILED,        /* its region is ours */
};

enum { PROCESS_ENTRY_REASON_BYTES = 768 };

struct process_entry {
	pid_t pid;
	struct thread_birth identity;
	enum process_entry_state state;
	uint32_t looks;
	uint64_t round;    /* the last sweep that has met it */
	uint64_t ino;      /* PROCESS_PROFILED: of its region */
	bool first;        /* this process was found before the others that have the region */
	bool opened_again; /* PROCESS_PROFILED: it has opened the library once more: an exec */
	bool silenced; /* PROCESS_NEW: we have turned off the sampling that an earlier daemon had turned on */
	uint64_t again_ns; /* PROCESS_REFUSED: when it is looked at again; 0: never */
	uint64_t since_ns; /* monotonic: when its profiling began, or when it was first seen */
	int64_t since_unix_ns;
	int pidfd; /* if it is `first`; else -1 */
	uid_t uid; /* the effective one when the rules were asked */
	/* Owned; NULL: unknown. library: its build id. */
	char *service, *exe, *comm, *container, *labels, *library, *reason;
};

struct process_table {
	struct process_entry **entries; /* sorted by pid */
	size_t count, room;
	int epoll_fd; /* borrowed; the pidfds are in this set */
};

void process_table_fini(struct process_table *table);

/* NULL if the table has no such process. */
struct process_entry *process_table_find(const struct process_table *table, pid_t pid);

/* The entry of that pid. It is made anew, and *is_new is true, if there was none, or if it was of another
 * process or program. NULL if there is no memory. */
struct process_entry *process_table_enter(
    struct process_table *table, pid_t pid, const struct thread_birth *identity, bool *is_new);

/* Removes and frees an entry. */
void process_table_remove(struct process_table *table, pid_t pid);

/* Removes the entries of processes that the sweep of this round has not met. */
void process_table_forget(struct process_table *table, uint64_t round);

/* Replaces a text of an entry by a copy of value, or by NULL. */
void process_entry_set(char **text, const char *value);

/* Notes that the process is not profiled, and why. Returns true. */
__attribute__((format(printf, 2, 3))) bool process_entry_refuse(
    struct process_entry *entry, const char *format, ...);

#endif

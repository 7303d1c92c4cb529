/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every process that the daemon has looked at, and what it thinks of it. A process is known by its pid,
 * when it was forked, and where its stack begins, which is another address after each exec. So one look at
 * a process that does not concern us is enough, and costs one read later.
 */
#ifndef SAMPLER_DAEMON_PROCESS_TABLE_H
#define SAMPLER_DAEMON_PROCESS_TABLE_H

#include "sampler/linux/thread_facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum process_entry_state {
	PROCESS_NEW,     /* not looked at yet */
	PROCESS_NOT_YET, /* offers nothing so far; looked at again a few times, as it may be loading */
	PROCESS_WITHOUT_LIBRARY, /* offers nothing: does not carry the library */
	PROCESS_REFUSED,         /* not profiled, for a reason */
	PROCESS_ATTACHING,       /* is being attached to: the result decides */
	PROCESS_PROFILED,        /* its region is ours */
};

enum { PROCESS_ENTRY_REASON_BYTES = 768 };

struct process_entry {
	pid_t pid;
	struct thread_birth identity;
	enum process_entry_state state;
	uint32_t looks;
	uint64_t round;    /* of the sweep that has last seen it */
	uint64_t ino;      /* of its region; PROCESS_PROFILED */
	bool first;        /* of those that have the region: it was the one that was found */
	bool attached;     /* it was attached to */
	bool opened_again; /* PROCESS_PROFILED: it has opened the library since: it has executed a program */
	bool silenced;     /* PROCESS_NEW: what an earlier daemon had turned on in it is off */
	uint64_t again_ns; /* PROCESS_REFUSED: when it is looked at again; 0: never */
	uint64_t since_ns; /* monotonic: of the hand-over, or when it was first seen */
	int64_t since_unix_ns;
	int pidfd; /* of `first`; else -1 */
	uid_t uid; /* effective, when it was decided about; with `library` */
	/* texts, owned; NULL: unknown */
	char *service, *exe, *comm, *container, *labels, *library, *reason;
};

struct process_table {
	struct process_entry **entries; /* by pid */
	size_t count, room;
	int epoll_fd; /* borrowed: in which the pidfds are */
};

void process_table_fini(struct process_table *table);

/* NULL: not in it. */
struct process_entry *process_table_find(const struct process_table *table, pid_t pid);

/* The entry of that pid, made anew if it was another process' or program's. NULL: out of memory. *is_new. */
struct process_entry *process_table_enter(
    struct process_table *table, pid_t pid, const struct thread_birth *identity, bool *is_new);

/* Removes an entry, and what it has. */
void process_table_remove(struct process_table *table, pid_t pid);

/* Removes the entries that the sweep of this round has not seen. */
void process_table_forget(struct process_table *table, uint64_t round);

/* Replaces a text of an entry by a copy; text NULL: none. */
void process_entry_set(char **text, const char *value);

/* Notes that the process is not profiled, and why. Returns true. */
__attribute__((format(printf, 2, 3))) bool process_entry_refuse(
    struct process_entry *entry, const char *format, ...);

#endif

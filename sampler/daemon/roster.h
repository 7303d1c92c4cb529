/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every process that the daemon has looked at, and what it thinks of it. A process is known by its pid,
 * when it was forked, and where its stack begins, which is another address after each exec. So one look at
 * a process that does not concern us is enough, and costs one read later.
 */
#ifndef SAMPLER_DAEMON_ROSTER_H
#define SAMPLER_DAEMON_ROSTER_H

#include "sampler/linux/thread_facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum roster_state {
	ROSTER_NEW,       /* not looked at yet */
	ROSTER_NOTHING,   /* offers nothing so far; looked at again a few times, as it may be loading */
	ROSTER_OTHER,     /* offers nothing: does not carry the library */
	ROSTER_REFUSED,   /* not profiled, for a reason */
	ROSTER_ATTACHING, /* is being attached to: the result decides */
	ROSTER_PROFILED,  /* its region is ours */
};

struct roster_entry {
	pid_t pid;
	struct thread_birth identity;
	enum roster_state state;
	uint32_t looks;
	uint64_t round;    /* of the sweep that has last seen it */
	uint64_t ino;      /* of its region; ROSTER_PROFILED */
	bool first;        /* of those that have the region: it was the one that was found */
	bool attached;     /* it was attached to */
	bool opened_again; /* ROSTER_PROFILED: it has opened the library since: it has executed a program */
	bool silenced;     /* ROSTER_NEW: what an earlier daemon had turned on in it is off */
	uint64_t again_ns; /* ROSTER_REFUSED: when it is looked at again; 0: never */
	uint64_t since_ns; /* monotonic: of the hand-over, or when it was first seen */
	int64_t since_unix_ns;
	int pidfd; /* of `first`; else -1 */
	uid_t uid; /* effective, when it was decided about; with `library` */
	/* texts, owned; NULL: unknown */
	char *service, *exe, *comm, *container, *labels, *library, *reason;
};

struct roster {
	struct roster_entry **entries; /* by pid */
	size_t count, room;
	int epoll_fd; /* borrowed: in which the pidfds are */
};

void roster_fini(struct roster *roster);

/* NULL: not in it. */
struct roster_entry *roster_find(const struct roster *roster, pid_t pid);

/* The entry of that pid, made anew if it was another process' or program's. NULL: out of memory. *is_new. */
struct roster_entry *roster_enter(
    struct roster *roster, pid_t pid, const struct thread_birth *identity, bool *is_new);

/* Removes an entry, and what it has. */
void roster_remove(struct roster *roster, pid_t pid);

/* Removes the entries that the sweep of this round has not seen. */
void roster_forget(struct roster *roster, uint64_t round);

/* Replaces a text of an entry by a copy; text NULL: none. */
void roster_set(char **text, const char *value);

#endif

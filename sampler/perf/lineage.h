/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While counters are put on the threads of a running process: which threads have them from us, which have
 * inherited them, and of which it is unknown. Pure: it is told what was seen.
 *
 * A new thread inherits its creator's counters as they are when its creation begins. When its creation ends,
 * the creator's trackers report the FORK, if there are any by then. So the FORK of a creation that had begun
 * before the creator's counters were complete looks like any other, but what was inherited may be all, some,
 * or nothing. A thread is settled once such a creation would be over: its FORKs from then on are certain,
 * those before are doubtful.
 */
#ifndef SAMPLER_PERF_LINEAGE_H
#define SAMPLER_PERF_LINEAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lineage_thread {
	uint64_t tid;
	uint64_t settled_ns; /* 0: not yet */
	bool ended;          /* before counters were on it: it has none */
};

struct lineage_fork {
	pid_t tid, parent_tid;
	uint64_t time_ns;
	bool gone;
};

/* All zero is an empty one. */
struct lineage {
	struct lineage_thread *threads; /* by tid, ascending */
	size_t thread_count, thread_capacity;
	struct lineage_fork *forks;
	size_t fork_count, fork_capacity;
};

void lineage_free(struct lineage *lineage); /* and empties it */

/* All our counters are on the thread. 0 or -ENOMEM. */
int lineage_add(struct lineage *lineage, pid_t tid);

/* The thread had ended before they were: it is not to be asked again, however long it is listed. 0 or
 * -ENOMEM. */
int lineage_end(struct lineage *lineage, pid_t tid);

/* Nothing to be done for this one: added, ended, or a FORK tells of it. */
bool lineage_knows(const struct lineage *lineage, pid_t tid);

/* The FORK of a thread. 0 or -ENOMEM. */
int lineage_fork(struct lineage *lineage, const struct lineage_fork *fork);

/* At now_ns no creation was under way that had begun before the thread was added. */
void lineage_settle(struct lineage *lineage, pid_t tid, uint64_t now_ns);

/* The next thread that is not settled, from *at on, which moves behind it; 0: none. */
pid_t lineage_unsettled(const struct lineage *lineage, size_t *at);

/* A thread with counters of ours that has created another of which it is unknown what it inherited; 0: none.
 * Its counters are to be closed, by which all who inherited them lose them too, and it is to be forgotten. */
pid_t lineage_doubtful(const struct lineage *lineage);

/* Forgets a thread, and who has inherited from it: all are strangers again. */
void lineage_forget(struct lineage *lineage, pid_t tid);

/* A thread that has counters of ours and has inherited others; 0: none. Ours are to be closed: it is none of
 * those added from here on. */
pid_t lineage_take_double(struct lineage *lineage);

#endif

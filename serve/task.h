/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer that is made of profiles: fetches them, several at a time and from several places, and makes the
 * reply of them in the thread of jobs.h.
 *
 *     task_new -> task_fetch -> fetched() -> task_submit -> make(), in that thread -> finished()
 *
 * An answer to `seconds=` calls task_fetch() twice: for the profiles before the wait, and for those after it.
 */
#ifndef SERVE_TASK_H
#define SERVE_TASK_H

#include "serve/broker_client.h"
#include "serve/jobs.h"
#include "serve/reply.h"
#include "serve/snapshots.h"

enum { TASK_WHY_BYTES = 256, TASK_ID_BYTES = 64 };

#define TASK_BYTES_MAX ((uint64_t)512 << 20) /* of all profiles of a task */

/* A profile. */
struct task_item {
	enum task_item_kind {
		TASK_NOW,  /* the heap of `key` as it is now */
		TASK_CPU,  /* where `key` spends CPU time, for duration_ms */
		TASK_FILE, /* the file of that number */
		TASK_READY /* `profile` is there already */
	} kind;
	struct process_key key;
	uint64_t file;
	uint32_t duration_ms;
	struct blob *profile; /* held by the item; NULL until it is fetched, or if there is an error */
	int error;
	char why[TASK_WHY_BYTES];

	/* Set and read by the answers of /api/v1: see api_facts.h. */
	size_t column, owner;
	bool ended;
	char id[TASK_ID_BYTES];

	/* task.c's own */
	struct task *task;
	struct snapshots_waiter waiter;
	uint64_t broker_id;
	bool pending;
};

struct task {
	struct job job;
	struct request *request; /* NULL: nobody waits any more */
	struct task_item *items; /* owned */
	size_t count;            /* of the items in use: the first ones */
	struct reply reply;
	bool has_gzip; /* the client takes Content-Encoding: gzip */

	/* In the thread of jobs: makes `reply` of the items and the task's own data, and touches nothing
	 * else. */
	void (*make)(struct task *task);
	void (*free_data)(struct task *task); /* frees the task's own data; NULL: there is none */

	/* Called in the web process' thread, while there is a request.
	 * fetched(): each item has a profile or an error.
	 * made(): the reply is made. NULL: nothing to do then.
	 * finished(): the reply is made, or job.refused is set. It drops the task. */
	void (*fetched)(struct task *task);
	void (*made)(struct task *task);
	void (*finished)(struct task *task);

	struct broker_client *broker;
	struct snapshots *snapshots;
	uint64_t not_before_ns, bytes;
	size_t pending;
	bool is_submitted;
};

/* A task of `bytes` bytes, all zero, with room for so many items and none in use. NULL: no memory. */
void *task_new(size_t bytes, size_t room);

/* Drops the task, in any state. A task in the thread of jobs goes away when its reply is made. NULL
 * is fine. */
void task_drop(struct task *task);

/* Fetches the items from `first` on. not_before_ns is for TASK_NOW, as snapshots_want() takes it. fetched()
 * is called once, from here or later. If CPU time of one process cannot be sampled now, fetched() is called
 * from here and all other fetching stops. */
void task_fetch(struct task *task, size_t first, uint64_t not_before_ns);

/* False: there are too many jobs, and the task is still the caller's. */
bool task_submit(struct task *task, struct jobs *jobs);

/* The first item that failed; NULL if none did. */
const struct task_item *task_failure(const struct task *task);

/* The first item that failed although its process and its file are there. If all have gone, the first item.
 * NULL: the rest can be added up. */
const struct task_item *task_failure_of_sum(const struct task *task);

/* The HTTP status for a failure. */
unsigned int task_failure_status(const struct task_item *failure);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Brings together the profiles that an answer is made of: several at a time, from several places. */
#ifndef SERVE_FETCH_H
#define SERVE_FETCH_H

#include "serve/broker_client.h"
#include "serve/snapshots.h"

enum { FETCH_WHY_BYTES = 256 };

#define FETCH_BYTES_MAX ((uint64_t)512 << 20) /* of all profiles of one answer */

struct fetch;

struct fetch_item {
	enum fetch_kind {
		FETCH_NOW,  /* the heap of `key` as it is */
		FETCH_CPU,  /* of `key`, for duration_ms */
		FETCH_FILE, /* the file of that number */
		FETCH_READY /* `profile` is there already */
	} kind;
	struct process_key key;
	uint64_t file;
	uint32_t duration_ms;
	struct blob *profile; /* the result, held by the item; NULL: error */
	int error;
	char why[FETCH_WHY_BYTES];

	/* the fetch's own */
	struct fetch *fetch;
	struct snapshots_waiter waiter;
	uint64_t request;
	bool pending;
};

struct fetch {
	struct broker_client *broker;
	struct snapshots *snapshots;
	uint64_t not_before_ns;            /* of FETCH_NOW, as snapshots_want() takes it */
	void (*done)(struct fetch *fetch); /* all items have a profile or an error */
	void *context;
	struct fetch_item *items; /* owned */
	size_t count, pending;
	uint64_t bytes;
};

/* Room for so many items, all zero. 0 or -ENOMEM. */
int fetch_init(struct fetch *fetch, size_t count);

/* done() is called once, from here or later; from here if CPU time of one of them cannot be sampled now, and
 * then nothing goes on. */
void fetch_begin(struct fetch *fetch);

/* Stops what is under way, done() will not be called, and drops the profiles. Fine at any time. */
void fetch_fini(struct fetch *fetch);

/* The first item that failed; NULL: none. */
const struct fetch_item *fetch_failure(const struct fetch *fetch);

/* Its process has ended, its file was removed: a sum is made without it. */
bool fetch_is_gone(const struct fetch_item *item);

/* The first item that failed for another reason, or, where all are gone, the first of them; NULL: the rest
 * can be added up. */
const struct fetch_item *fetch_failure_of_sum(const struct fetch *fetch);

/* The status of an answer that says so. */
unsigned int fetch_status(const struct fetch_item *failure);

#endif

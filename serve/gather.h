/* SPDX-License-Identifier: Apache-2.0 */
/* Brings together the profiles that an answer is made of: several at a time, from several places. */
#ifndef SERVE_GATHER_H
#define SERVE_GATHER_H

#include "serve/broker_client.h"
#include "serve/snapshots.h"

enum { GATHER_WHY_BYTES = 256 };

#define GATHER_BYTES_MAX ((uint64_t)512 << 20) /* of all profiles of one answer */

struct gather;

struct gather_item {
	enum gather_kind {
		GATHER_NOW,  /* the heap of `key` as it is */
		GATHER_CPU,  /* of `key`, for duration_ms */
		GATHER_FILE, /* the file of that number */
		GATHER_READY /* `profile` is there already */
	} kind;
	struct process_key key;
	uint64_t file;
	uint32_t duration_ms;
	struct blob *profile; /* the result, held by the item; NULL: error */
	int error;
	char why[GATHER_WHY_BYTES];

	/* the gather's own */
	struct gather *gather;
	struct snapshots_waiter waiter;
	uint64_t request;
	bool pending;
};

struct gather {
	struct broker_client *broker;
	struct snapshots *snapshots;
	uint64_t not_before_ns;              /* of GATHER_NOW, as snapshots_want() takes it */
	void (*done)(struct gather *gather); /* all items have a profile or an error */
	void *context;
	struct gather_item *items; /* owned */
	size_t count, pending;
	uint64_t bytes;
};

/* Room for so many items, all zero. 0 or -ENOMEM. */
int gather_init(struct gather *gather, size_t count);

/* done() is called once, from here or later; from here if CPU time of one of them cannot be sampled now, and
 * then nothing goes on. */
void gather_begin(struct gather *gather);

/* Stops what is under way, done() will not be called, and drops the profiles. Fine at any time. */
void gather_fini(struct gather *gather);

/* The first item that failed; NULL: none. */
const struct gather_item *gather_failure(const struct gather *gather);

/* Its process has ended, its file was removed: a sum is made without it. */
bool gather_is_gone(const struct gather_item *item);

/* The first item that failed for another reason, or, where all are gone, the first of them; NULL: the rest
 * can be added up. */
const struct gather_item *gather_failure_of_sum(const struct gather *gather);

/* The status of an answer that says so. */
unsigned int gather_status(const struct gather_item *failure);

#endif

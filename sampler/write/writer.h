/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: a queue of snapshots and the forked children that write them, WRITER_CHILDREN at a time.
 *
 * When several items wait, a child takes a batch of them. It writes one after the other, keeps what they
 * share (the names of a file's functions), and reports each result through a pipe at once. If a bad debug
 * file kills a child, the items that it reported are done. The item that it was writing is tried again, alone
 * and with less detail (functions only, then addresses only); the rest waits for the next batch. An urgent
 * item is written first, and gets its own child if all are busy.
 *
 * A pace is for many items that no client waits for. With a pace an item waits a while for others, because
 * each child has to look up the names of a file's functions once. If a whole batch waits, the children stop
 * yielding to other processes: else a busy machine would make the queue grow without end.
 *
 * Accounts take turns, first those of urgent items. A batch is made of items in this order, and ends after
 * some seconds. So no account waits for all items of another, which may submit more all the time.
 *
 * Items of one series are written one after the other, in the order in which they were submitted: they
 * replace each other's files, and the last one must stay.
 */
#ifndef SAMPLER_WRITE_WRITER_H
#define SAMPLER_WRITE_WRITER_H

#include "sampler/symbol/answer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	WRITER_CHILDREN = 2,
	WRITER_URGENT_CHILDREN = 1, /* additional children, for urgent items only */
	WRITER_BATCH = 64,          /* the most items that one child writes */
};

struct writer;

/* An item to write. It is the first member of the owner's struct, which is on the heap. */
struct writer_item {
	/*
	 * The child calls it. Returns 0 or -errno. *shared is NULL for the child's first item, and is passed
	 * on from item to item; only the child's end frees it. All items of a batch have the same detail.
	 * After -ENOMEM the item is tried again in its own child.
	 */
	int (*write)(const struct writer_item *item, void **shared);
	void (*discard)(struct writer_item *item);
	const void *series;        /* items with the same pointer are of one series; NULL: of none */
	uint64_t account;          /* the number of its account; accounts take turns */
	enum symbol_detail detail; /* reduced after a child was killed */
	bool urgent;               /* a client waits for it, or for a later one of its series */
};

/* Calls `done` when an item is on disk (error 0) or could not be written (-errno), and then discards the
 * item. NULL if out of memory. */
struct writer *writer_new(
    void (*done)(void *context, const struct writer_item *item, int error), void *context);
void writer_free(struct writer *writer);

/* Takes ownership of the item. */
void writer_submit(struct writer *writer, struct writer_item *item);

/*
 * Must be called regularly. Passes on the children's results. If a child could not be forked, tries again,
 * and gives up after a time. now_ns: monotonic.
 */
void writer_tend(struct writer *writer, uint64_t now_ns);

struct writer_pace {
	uint64_t patience_ns; /* how long an item may wait for others; 0: not at all */
	size_t room;       /* items for which writer_can_start() says yes; 0: as many as there are children */
	uint64_t batch_ns; /* a child that has taken so long begins no other item; 0: no limit */
	size_t account_room; /* the same for items of each account, however many other accounts have */
};

void writer_set_pace(struct writer *writer, const struct writer_pace *pace);

/* hurry: the user waits for everything, so no child yields to other processes. */
void writer_set_hurry(struct writer *writer, bool hurry);

/* A child of the sampler has ended. */
void writer_reap(struct writer *writer, pid_t pid, int status);

/* Would an item of that account, submitted now, be written at once, or wait for few others only? The pace
 * says for how many. */
bool writer_can_start(const struct writer *writer, uint64_t account);

#endif

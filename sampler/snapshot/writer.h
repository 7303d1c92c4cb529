/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: a queue of snapshots and the forked children that write them, WRITER_CHILDREN at a time.
 *
 * When several items wait, a child takes a batch of them: it writes one after the other, keeps what they
 * share (the names of a file's functions), and reports each result through a pipe as soon as it is done. If a
 * bad debug file kills a child, the items that it reported are done; the item that it was writing is tried
 * again, alone and with less detail (functions only, then addresses only), and the rest waits for the next
 * batch. An urgent item is written first, and gets its own child if all are busy.
 *
 * Who has many items that nobody waits for gives a pace: then an item waits a while for others, for the child
 * that writes the first one of a file has to learn its names; and if a whole batch waits, the children stop
 * yielding to other processes, else a busy machine would make the queue grow without end.
 *
 * Accounts take turns, those of urgent items and then those of the others, and a batch is made of items in
 * this order and ends after some seconds: so nobody waits for all that somebody else has, and brings in anew.
 *
 * Items of one series are written one after the other, in the order in which they came: they replace each
 * other's files, and the last is what stays.
 */
#ifndef SAMPLER_SNAPSHOT_WRITER_H
#define SAMPLER_SNAPSHOT_WRITER_H

#include "sampler/symbol/answer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	WRITER_CHILDREN = 2,
	WRITER_URGENT_CHILDREN = 1, /* more, for urgent items only */
	WRITER_BATCH = 64,          /* items that one child writes */
};

struct writer;

/* An item to write: the first member of the owner's struct, which is on the heap. */
struct writer_item {
	/*
	 * Called in the child; 0 or -errno. *shared is NULL at first and is passed on from item to item; it
	 * is freed only by the child's end. All items of a batch have the same detail. After -ENOMEM the item
	 * is tried again in its own child.
	 */
	int (*write)(const struct writer_item *item, void **shared);
	void (*discard)(struct writer_item *item);
	const void *series;        /* equal pointers: of one series; NULL: of none */
	uint64_t account;          /* whose it is, by any number: accounts take turns */
	enum symbol_detail detail; /* reduced after a child was killed */
	bool urgent;               /* a client waits for it, or for a later one of its series */
};

/* `done` is called when an item is on disk (error 0) or cannot be (-errno); the item is discarded after it.
 * */
struct writer *writer_new(
    void (*done)(void *context, const struct writer_item *item, int error), void *context);
void writer_free(struct writer *writer);

/* Takes ownership of the item. */
void writer_submit(struct writer *writer, struct writer_item *item);

/*
 * To be called regularly: passes on the children's results, and tries again to fork a child if that failed,
 * until it gives up. now_ns: monotonic.
 */
void writer_tend(struct writer *writer, uint64_t now_ns);

struct writer_pace {
	uint64_t patience_ns; /* so long an item may wait for others; 0: none does */
	size_t room; /* for so many items writer_can_start() says yes; 0: as many as there are children */
	uint64_t batch_ns;   /* when a child has taken so long, it begins no other item; 0: no limit */
	size_t account_room; /* and for so many of each account, however many there are of others */
};

void writer_set_pace(struct writer *writer, const struct writer_pace *pace);

/* hurry: the user waits for everything, so no child yields to other processes. */
void writer_set_hurry(struct writer *writer, bool hurry);

/* A child of the sampler has ended. */
void writer_reap(struct writer *writer, pid_t pid, int status);

/* True if an item of that account that is submitted now would not have to wait, or by the pace not for
 * many. */
bool writer_can_start(const struct writer *writer, uint64_t account);

#endif

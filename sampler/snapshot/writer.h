/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: a queue of snapshots and the forked children that write them, WRITER_CHILDREN at a time.
 *
 * When several items wait, a child takes a batch of them: it writes one after the other, keeps what they have
 * in common (the names of a file's functions), and tells through a pipe what became of each as soon as it is
 * done. A child that is killed by a bad debug file leaves what it had told of as done; the item that it was
 * at is tried again, alone and with less detail (functions only, then addresses only), and the rest waits for
 * the next batch. An item that somebody waits for goes first, and has a child of its own when all are busy.
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

/* What is to be written: the beginning of a struct of the owner's, on the heap. */
struct writer_item {
	/*
	 * In the child; 0 or -errno. *shared is NULL at first, and then what the items before have left
	 * there: all items of a batch have the same detail. Nobody frees it, the child's end does.
	 * -ENOMEM: tried again in a child of its own.
	 */
	int (*write)(const struct writer_item *item, void **shared);
	void (*discard)(struct writer_item *item);
	enum symbol_detail detail; /* less after a child was killed */
	bool urgent;               /* somebody waits for it */
};

/* `done` is called when an item is on disk (error 0) or cannot be (-errno); the item is discarded after it.
 * */
struct writer *writer_new(
    void (*done)(void *context, const struct writer_item *item, int error), void *context);
void writer_free(struct writer *writer);

/* Takes the item over. */
void writer_submit(struct writer *writer, struct writer_item *item);

/*
 * To be called now and then: what the children have told is passed on, and a child that could not be forked
 * is tried again, and given up in the end. now_ns: monotonic.
 */
void writer_tend(struct writer *writer, uint64_t now_ns);

/* Whether somebody waits for everything: then no child yields to other processes. */
void writer_set_hurry(struct writer *writer, bool hurry);

/* A child of the sampler has ended. */
void writer_reap(struct writer *writer, pid_t pid, int status);

/* True if an item that is submitted now would not have to wait. */
bool writer_can_start(const struct writer *writer);

#endif

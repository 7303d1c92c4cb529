/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: a queue of snapshots and the forked children that write them, WRITER_CHILDREN at a time. A
 * child that is killed by a bad debug file is followed by one that looks at less: functions only, then
 * addresses only.
 */
#ifndef SAMPLER_SNAPSHOT_WRITER_H
#define SAMPLER_SNAPSHOT_WRITER_H

#include "sampler/symbol/answer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	WRITER_CHILDREN = 2,
};

struct writer;

/* What is to be written: the beginning of a struct of the owner's, on the heap. */
struct writer_item {
	int (*write)(const struct writer_item *item); /* in the child; 0 or -errno */
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

/* To be called now and then: a child that could not be forked is tried again, and given up in the end.
 * now_ns: monotonic. */
void writer_tend(struct writer *writer, uint64_t now_ns);

/* A child of the sampler has ended. */
void writer_reap(struct writer *writer, pid_t pid, int status);

/* True if an item that is submitted now would not have to wait. */
bool writer_can_start(const struct writer *writer);

#endif

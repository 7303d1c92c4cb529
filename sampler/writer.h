/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: a queue of snapshots and the forked children that write them, WRITER_CHILDREN at a time. A child that is
 * killed by a bad debug file is followed by one that looks at less: functions only, then addresses only.
 */
#ifndef SAMPLER_WRITER_H
#define SAMPLER_WRITER_H

#include "sampler/snapshot.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
	WRITER_CHILDREN = 2,
};

struct writer;

/* `done` is called when a snapshot is on disk (error 0) or cannot be (-errno); the snapshot goes away after it. */
struct writer *writer_new(void (*done)(void *context, const struct snapshot *snapshot, int error), void *context);
void writer_free(struct writer *writer);

/* Takes the snapshot over: heap memory, with its view's rows. */
void writer_submit(struct writer *writer, struct snapshot *snapshot);

/* To be called now and then: a child that could not be forked is tried again, and given up in the end. */
void writer_tend(struct writer *writer);

/* A child of the sampler has ended. */
void writer_reap(struct writer *writer, pid_t pid, int status);

/* True if a snapshot that is submitted now would not have to wait. */
bool writer_can_start(const struct writer *writer);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that forked children of an attached process execute: they do not have the library, and are not
 * followed. They are counted, and the last is named, in the profiles of the image that they come from.
 *
 * Where the kernel's records of all processes reach us (uprobe) each is seen; else those that live at a look.
 */
#ifndef SAMPLER_HEAP_UNFOLLOWED_H
#define SAMPLER_HEAP_UNFOLLOWED_H

#include "sampler/heap/process.h"
#include "sampler/perf/record.h"

/* Why, where one of the processes itself executes a program. */
#define UNFOLLOWED_WHY "what an attached process executes is not followed"

/* The image was attached to: what is forked from now on counts. */
void unfollowed_begin(struct image *image);

/* FORK, EXIT, and COMM by an exec. births: the forked children, by pid, with their image; borrowed. */
void unfollowed_record(struct table *births, const struct table *processes, const struct record *record);

/* Now and then. by_records: those of all processes reach us; else this looks at the children that there are.
 * With -v, a line about what is new. */
void unfollowed_tend(struct image *image, bool by_records, int verbosity);

/* The image goes. */
void unfollowed_end(struct image *image, struct table *births);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The regular look at all program runs and processes: what has come, what has ended, what is abandoned. */
#ifndef SAMPLER_BOOKS_REGISTRY_LOOK_H
#define SAMPLER_BOOKS_REGISTRY_LOOK_H

#include "sampler/books/registry.h"

/* Notices claimed regions, prepares program runs, finds the places of forked children, removes abandoned
 * program runs. Returns the number of new program runs. */
size_t registry_look_runs(struct registry *registry);

/* The part of it that notices claimed regions, and settles the program runs that are ready. Returns the
 * number of new program runs. */
size_t registry_look_claims(struct registry *registry);

/* Closes the books of every process that is known and has ended, after its last samples were read. */
void registry_look_ended(struct registry *registry);

#endif

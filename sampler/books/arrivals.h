/* SPDX-License-Identifier: Apache-2.0 */
/* Program runs whose programs ran before their region was ours: of an earlier sampler, offered, or
 * attached to. */
#ifndef SAMPLER_BOOKS_ARRIVALS_H
#define SAMPLER_BOOKS_ARRIVALS_H

#include "sampler/books/registry.h"

/* Takes over a region of an earlier sampler, with every process in it. Returns 0 or -ENOMEM (region
 * closed). */
int arrivals_adopt(struct registry *registry, struct region *region);

/* Takes a region that a program run has offered: accepted, and turned on afterwards. Returns 0 or -ENOMEM
 * (region closed). */
struct arrivals_offer {
	struct region *region;    /* owned from now on, as the plan is, which may be NULL */
	struct target_plan *plan; /* by malloc */
	uint64_t period_bytes;
	pid_t pid;         /* of the process that has it mapped */
	uint64_t after_ns; /* for how long the process had run; 0: unknown */
	bool used;         /* an earlier daemon had turned it on */
};
int arrivals_offer(struct registry *registry, const struct arrivals_offer *offer);

/* A running process has taken the region, and is attached from now on. Returns 0 or -ENOMEM (region
 * closed). */
struct arrivals_attached {
	pid_t pid;
	uint64_t after_ns, rss_bytes; /* for how long it had run, and its resident memory */
	bool other_library;           /* its library is not the file on which the uprobe is */
	struct target_plan *plan;     /* by malloc, owned from now on; NULL: none */
	uint64_t period_bytes;        /* its own; 0: the session's */
};
int arrivals_attach(
    struct registry *registry, struct region *region, const struct arrivals_attached *attached);

/* Whether the process, which was attached to, still has the region of its program run mapped. */
bool arrivals_has_attached(const struct books *books, pid_t pid);

/* Stops sampling in the program runs that were attached to; their processes still have the hooks. */
void arrivals_stop_attached(struct registry *registry);

/* Calls `visit` for each of their processes that lives; and closes the books of all of these. */
void arrivals_visit_attached(
    struct registry *registry, void (*visit)(void *context, const struct target *target), void *context);
void arrivals_close_attached(struct registry *registry);

#endif

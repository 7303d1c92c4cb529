/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: the life of each program run, from the claim of a region to its removal.
 *
 *   ticket gone -> run, RUN_CLAIMED
 *   header complete -> RUN_READY
 *   the process at place 0 is watched, breakpoints are set -> RUN_SETTLED
 *   no process is left and none has the region mapped -> abandoned, run removed
 *
 * The files beside it do the rest: registry_look.h looks regularly, arrivals.h has program runs whose
 * programs ran before, process_life.h has the processes, drain.h their samples, unprofiled.h what was not
 * profiled.
 */
#ifndef SAMPLER_BOOKS_REGISTRY_H
#define SAMPLER_BOOKS_REGISTRY_H

#include "pprof/text/throttle.h"
#include "sampler/books/backend_fallback.h"
#include "sampler/books/books.h"
#include "sampler/books/choice.h"
#include "sampler/books/intake.h"
#include "sampler/books/unprofiled.h"
#include "sampler/intake/launch.h"
#include "sampler/intake/region_pool.h"
#include "sampler/perf/probe.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct registry_setup {           /* borrowed */
	struct intake *intake;    /* its books are the registry's */
	struct region_pool *pool; /* NULL: none, all regions are offered */
	struct probe *probe;
	struct modules *modules;
	struct choice *choice; /* NULL: all programs are recorded */
	int epoll_fd;          /* pidfds are added here */
	int verbosity;
	struct heap_options heap;
	bool may_yield; /* backend auto: a breakpoint may be replaced by the copy backend */
	const struct launch *launch;
	struct target_listener listener; /* closed: ends in process_life_release() */
};

struct registry {
	struct registry_setup setup;
	struct throttle abandoned_looks; /* their time, in nanoseconds */

	/* Each of these is written by the file of its name. */
	struct backend_fallback fallback;
	struct unprofiled unprofiled;
	struct process_lives {
		uint64_t arrivals;    /* processes ever watched */
		bool containers_said; /* that what is in containers is not profiled */
		/* A process had already ended when we first saw it, so we cannot learn of its end. */
		bool unwatched;
	} lives; /* process_life.c */
	struct drain {
		size_t most;    /* samples and frees of one run, at most, by the last drain */
		uint64_t round; /* drain_some(): runs whose number is another are due */
	} drain;
	struct registry_looks {
		uint64_t requests; /* for snapshots: how often a look found new ones in the shared memory */
		uint64_t linger_ns,
		    executed_ns;     /* last looks at what is left, and at what processes execute */
		uint32_t lingers;    /* looks at what is left, so far */
		uint64_t trimmed_ns; /* when freed memory was last returned */
		bool to_trim;
	} looks;
};

/* To be called once the setup is there. */
void registry_init(struct registry *registry);

/* Takes the region over. NULL: out of memory (region closed). */
struct program_run *registry_add_run(struct registry *registry, struct region *region);

/* Notices regions that were claimed. Called also during long work: otherwise more program runs may start
 * between two looks than there are spare regions. Returns how many have come. */
size_t registry_take_claims(struct registry *registry);

/* Notices program runs whose header is complete now. Adds and removes nothing, so that it can be called
 * while a ring is being drained: a sample may come before the look that would have found its program run.
 * Returns how many there are. */
size_t registry_find_ready(struct registry *registry);

/* The program run, whose region an earlier sampler had, is ready, and its books are taken over. */
void registry_begin_adoption(struct program_run *run);

/* The work that follows from the program run's being ready is done. */
void registry_settled(struct program_run *run);

/* Ids increase: whether the program of one program run was executed before that of another. */
bool registry_is_older(const struct program_run *run, const struct program_run *than);

/* The sampling period of all program runs, now and to come. */
void registry_set_period(struct registry *registry, uint64_t period_bytes);

bool registry_empty(const struct registry *registry);

/* Looks which program runs in anonymous memory no process has mapped any more; not too often. */
void registry_look_for_abandoned(struct registry *registry, uint64_t now_ns);

/* Whether the program run is abandoned: no process of it is left, and no other process has the region mapped.
 * Of a region in anonymous memory the last look says so. */
bool registry_is_abandoned(const struct program_run *run, uint64_t now_ns);

void registry_remove_run(struct registry *registry, struct program_run *run);

/* Removes every program run, whatever its state. */
void registry_fini(struct registry *registry);

#endif

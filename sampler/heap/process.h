/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and images.
 *
 *   image    one execution of a program: one region. The process that executed it has place 0; a child that
 *            it forks gets another place with its first sample.
 *   process  one place of an image: pid, address space, stacks, books.
 *
 * A pid never identifies anything here (it is reused, differs between namespaces, and a vfork child has its
 * own while it works in its parent's memory): samples carry the region's key and the place.
 */
#ifndef SAMPLER_HEAP_PROCESS_H
#define SAMPLER_HEAP_PROCESS_H

#include "sampler/perf/backend.h"
#include "sampler/heap/heap.h"
#include "sampler/target/table.h"
#include "sampler/target/target.h"
#include "sampler/region/region.h"
#include "sampler/unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Counters of what happened to a process' samples on our side, by cause. */
struct process_counters {
	uint64_t taken;  /* stacks that arrived */
	uint64_t copied; /* of these, by the copy backend */
	uint64_t by_uprobe, by_breakpoint;
	uint64_t bad; /* malformed */
	uint64_t outcome[UNWIND_OUTCOMES];
	uint64_t no_room;       /* stacks that the table had no room for */
	uint64_t frees_unknown; /* of blocks whose stack was lost */
};

struct image;

struct process {
	struct target target; /* first */
	struct image *image;
	uint32_t place;
	/* without a pidfd, the pid is only what the target claims: good for a name, not for /proc */
	bool watched; /* the registry knows it */
	struct heap *heap;
	struct process_counters counters;
	/* Its executable, see executed.h; 0 and 0: not the one that is there now. */
	bool executable_known;
	dev_t executable_dev;
	ino_t executable_ino;
	uint64_t executed_ns; /* when target.unseen was noted */
	/* At the last look of backend_fallback.c: triggers fired, stacks received. */
	uint64_t triggered_before, arrived_before;
	uint32_t silent_looks; /* looks in succession with triggers but without a stack */
};

struct image {
	struct image *next;
	struct region *region; /* owned */
	bool ready;            /* the image has written its part of the header */
	/* why the image makes no use of its region; NULL: it does, or has said nothing */
	const char *declined;
	bool settled;             /* the work that follows from its being ready is done */
	uint64_t claimed_ns;      /* when we saw that its ticket was taken */
	struct heap_options heap; /* for the books of its processes */
	struct table *processes;  /* by pid: each of its processes is in it while it exists; borrowed */
	uint64_t copied_seen, places_seen, requests_seen;
	uint64_t frees_seen, frees_noted, frees_lost, frees_stuck_ns; /* see free_log.h */
	uint64_t trigger_address;
	enum backend backend;       /* by which its stacks come, see backend_fallback.h */
	enum backend event_backend; /* the last that was an event: what lies in the rings came by it */
	int *fds;                   /* breakpoint events */
	size_t fd_count, fd_room;
	/* Context switches of place 0 when last looked at, when that was, and how long to wait from then. */
	uint64_t turns, turns_ns, turns_wait_ns;
	uint32_t live_processes;
	uint32_t unreleased; /* processes whose books are closed and whose profiles are being written */
	uint32_t searches;   /* for processes whose pid was not to be believed */
	uint32_t
	    places_end; /* no process at this place and beyond: a crowd of images is looked through often */
	struct process *process[REGION_PLACES];
};

/* Takes the region over (also on failure). NULL: out of memory. */
struct image *image_new(struct region *region, uint64_t now_ns);
void image_free(struct image *image); /* closes the region; every process must be gone */

/* The process at a place, made if there is one in the shared memory and it is not known yet; NULL otherwise.
 * */
struct process *image_process(struct image *image, uint32_t place, struct modules *modules);

/* Forgets a finished process; its place in the region is released by region_release_place, not here. */
void process_free(struct process *process);

/* Gives the blocks that a child inherited their stacks from the parent's books: the addresses are the same,
 * only the numbers change. When the child appears, the parent's last stacks may not have been read yet, so
 * this is repeated before the child's books are read. */
void process_inherit(struct process *process);

/* Takes over books that an earlier sampler kept: what was counted so far gets the marker frame for its stack.
 * */
void process_adopt(struct process *process);

/* Whether it still is the image that we know: it may have executed another program. */
bool process_is_there(const struct process *process);

/* Samples that the process has counted so far. */
uint64_t process_samples(const struct process *process);

#endif

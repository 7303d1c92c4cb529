/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and program runs.
 *
 *   run      one execution of a program, with one region. The process that executed the program has
 *            place 0; a child that it forks gets another place with its first sample.
 *   process  one place of a run: pid, address space, stacks, books.
 *
 * A pid identifies nothing here: pids are reused, differ between namespaces, and a vfork child has a pid
 * of its own while it works in its parent's memory. Samples carry the region's key and the place.
 *
 * Both structs consist of parts. Each part is written by the one file that its comment names, and read by
 * others.
 */
#ifndef SAMPLER_BOOKS_PROCESS_H
#define SAMPLER_BOOKS_PROCESS_H

#include "pprof/text/throttle.h"
#include "sampler/books/heap.h"
#include "sampler/books/stack_log.h"
#include "sampler/intake/memory_bound.h"
#include "sampler/intake/region.h"
#include "sampler/intake/region_mapped.h"
#include "sampler/intake/table.h"
#include "sampler/intake/target.h"
#include "sampler/perf/probe.h"
#include "sampler/unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Counters of what happened to a process' samples in the sampler, by cause. */
struct process_counters {
	uint64_t taken;  /* stacks that arrived */
	uint64_t copied; /* of these, by the copy backend */
	uint64_t by_uprobe, by_breakpoint;
	uint64_t dumps;  /* stacks that the kernel dumped, those of walked samples too */
	uint64_t walked; /* samples whose stack the target has walked itself */
	/* the same, but no dump of the stack has arrived yet: these samples have no stack for now */
	uint64_t not_dumped;
	uint64_t outcome[UNWIND_COUNTS];
	uint64_t no_room;           /* samples whose stack or site the books had no room for */
	uint64_t inherited_no_room; /* the same, for blocks inherited from the parent */
	/* samples that an earlier sampler took, and whose stacks only it knew: they are counted under the
	 * stack STACK_BEFORE_RESTART */
	uint64_t before_restart;
	uint64_t frees_unknown; /* of blocks whose stack was lost */
};

/* walked.c: what the books have of the counts of walked stacks */
struct process_walked {
	struct tally *seen; /* by number */
	size_t seen_room;
	uint32_t *stack; /* by number: the stack in the process' own table, plus 1 */
	size_t stack_room;
	uint64_t samples_seen;
	struct process_walked_waiting {
		bool any;
		/* A bit for each number. It is set if the number has counts that are not in the books, since
		 * no dump of its stack has come. now: after the last drain. before: at asked_ns, when the
		 * missing dumps were last asked for. */
		uint64_t now[WALK_STACKS / 64], before[WALK_STACKS / 64];
		uint64_t asked_ns;
	} * waiting;
};

/* process_life.c */
struct process_life {
	bool watched;
	bool ended;    /* the process has ended; its books may still be open */
	bool released; /* its books are closed, and the last profile is written */
	/* The process has executed another program, and that program's run was in the books already when
	 * the process was first watched. */
	bool followed;
};

/* executed.c: what the process executes */
struct process_executed {
	/* The file of its program at the last look. dev and ino are 0 if the process executed another program
	 * before it was first watched: then the next look finds a change. */
	bool known;
	dev_t dev;
	ino_t ino;
	uint64_t stack;    /* of an attached process: where the stack of this very execution begins */
	uint64_t noted_ns; /* when target.unprofiled was noted */
	bool recorded;     /* the kernel's record of it was read: later mappings are the other program's */
	/* The process has executed another program, and the run of that program has declined its region. This
	 * is the reason. Such a run is counted already. NULL: no run has declined. */
	const char *declined;
};

/* backend_fallback.c: at the last look */
struct process_silence {
	uint64_t triggered_before, arrived_before; /* triggers fired, stacks received */
	uint32_t looks;                            /* in succession with triggers but without a stack */
};

struct books;
struct program_run;
struct offerer;
struct walked;

/* A chain of so many forks is followed. Blocks of a process beyond it have no known origin. */
enum { PROCESS_ANCESTORS = 16 };

struct process {
	/* First. Without a pidfd, the pid is only what the target claims: good for a name, not for /proc. */
	struct target target;
	struct program_run *run;
	uint32_t place;
	uint32_t generation; /* of the place */
	/* Its ancestors within the program run: [0] is the process at place 0, the last is the parent; 0: not
	 * known. The books number them from 1 (HEAP_ORIGIN_...). */
	pid_t ancestors[PROCESS_ANCESTORS];
	uint32_t ancestor_count;
	bool was_running; /* it was there before the session */
	/* It has no pidfd because no descriptor or memory was left for one: it may be alive. */
	bool unsure;
	struct heap *heap;
	struct process_walked walked;
	struct stack_log log;      /* of its stacks */
	struct memory_share share; /* of run->memory: the books */
	struct process_counters counters;
	struct process_life life;
	struct process_executed executed;
	struct process_silence silence;
};

/* ---- the parts of a program run */

/* registry.c */
enum run_state {
	RUN_CLAIMED,  /* the region is taken; the run has not written its part of the header yet */
	RUN_READY,    /* the header is complete; the sampler has not set the run up yet */
	RUN_ADOPTING, /* the books of an earlier sampler are being taken over */
	RUN_SETTLED,
};

struct run_life {
	enum run_state state;
	const char *declined; /* why the run does not use its region; NULL: it does, or has not answered */
	bool unchosen;        /* by --only and --exclude: no sample is taken, and earlier ones are dropped */
	uint64_t trigger_address; /* from the header */
};

/* registry_look.c: counts in the header at the last look */
struct run_looks {
	uint64_t places_seen, requests_seen;
};

/* arrivals.c: how the program run came */
struct run_origin {
	bool offered;              /* the run has made the region itself */
	uint64_t offered_after_ns; /* how long it had run by then; 0: not known */
	/* The process that was attached to while it ran, 0: none; how long it had run, and its resident
	 * memory by then. */
	pid_t attached_pid;
	uint64_t attached_after_ns, attached_rss_bytes;
	bool other_library; /* its library is not the file on which the uprobe is */
};

/* program_run.c: the processes by place */
struct run_places {
	struct process *at[REGION_PLACES];
	uint32_t end;  /* no process is at this place or beyond */
	uint32_t live; /* processes that are not freed yet */
};

/* program_run.c */
struct run_period {
	uint64_t bytes;           /* the run's own; 0: the session's */
	uint64_t lowered_unix_ns; /* when it was last lowered; 0: never */
};

/* cmd/daemon/periods.c: when the period was last adjusted, and how many samples had been taken by then */
struct run_tuning {
	uint64_t since_ns, samples;
};

/* registry.c: which process has a region in anonymous memory mapped; known from the last look */
struct run_mapped {
	pid_t by;       /* 0: not known */
	bool by_nobody; /* nobody has it mapped, and nobody ever will */
};

/* backend_fallback.c: how stacks arrive */
struct run_capture {
	enum backend backend;
	enum backend event_backend; /* the event that was used last: stacks in the rings came by it */
	int *fds;                   /* breakpoint events */
	size_t fd_count, fd_room;
	/* Context switches of the process at place 0 at the last look; the time of that look; and how long
	 * after it the next look is due. */
	uint64_t turns, turns_ns, turns_wait_ns;
};

/* drain.c */
struct run_drain {
	uint64_t dumps_noted;
	uint64_t round; /* the last one of drain_some() in which the run was read */
};

/* drain.c: how far the ring of frees is read */
struct run_frees {
	uint64_t seen, noted, lost, stuck_ns;
};

/* walked.c */
struct run_walked {
	struct walked *state; /* NULL: none yet */
	struct memory_share share;
};

/* stale_places.c: the claimed place that is being looked at */
struct run_claims {
	uint32_t place; /* 0: none */
	uint32_t looks; /* in succession at which nobody was there */
	uint64_t looked_ns;
};

/* process_identity.c: searches of /proc for processes that reported a wrong pid */
struct run_searches {
	struct throttle work; /* time of the searches, in nanoseconds */
};

/* unprofiled.c: what children of the program run's processes execute */
struct unfollowed {
	uint64_t count, said;         /* programs that were executed: so far, and at the last look */
	char last[TARGET_NAME_BYTES]; /* "/usr/bin/ls (pid 4711)" */
	uint64_t since_ticks, stack_start;
	struct throttle work; /* CPU time of the looks, in nanoseconds */
	struct unfollowed_child {
		pid_t pid;
		uint64_t ticks; /* with the pid: this very process */
		uint64_t met_ns;
		uint32_t looks;
		bool done;         /* it is counted, here or by its own program run */
		const char *why;   /* it is not profiled, by the last inspection; NULL: unknown */
		char program[128]; /* what it executed then */
	} * seen;                  /* that live */
	size_t seen_count, seen_capacity;
};

struct program_run {
	/* given when the program run is made */
	struct region *region;       /* owned */
	uint64_t claimed_ns;         /* when we saw that its ticket was taken */
	struct target_plan *plan;    /* owned, by malloc; NULL: none */
	struct heap_options heap;    /* for the books of its processes */
	struct books *books;         /* that it is in; borrowed */
	struct memory_bound *memory; /* of all processes; borrowed, NULL: none */

	struct run_life life;
	struct run_looks looks;
	struct run_origin origin;
	struct offerer *offerer; /* offerer.c; owned; NULL: unknown */
	struct run_places places;
	struct run_period period;
	struct run_tuning tuning;
	struct run_mapped mapped;
	struct run_capture capture;
	uint64_t copied_seen; /* intake.c */
	struct run_drain drain;
	struct run_frees frees;
	struct run_walked walked;
	struct run_claims claims;
	struct run_searches searches;
	struct unfollowed unfollowed;
};

/* Runs the statement that follows for each process of the program run, by place. */
#define program_run_each_process(process_, run)                                     \
	for (struct process *const *process_##_at = (run)->places.at, *process_;    \
	     process_##_at < (run)->places.at + (run)->places.end; process_##_at++) \
		if (!(process_ = *process_##_at)) {                                 \
		} else

static inline bool program_run_is_ready(const struct program_run *run)
{
	return run->life.state >= RUN_READY;
}

/* The pid of the process that took the samples of a site or row of this process' books; 0: not known. */
pid_t process_origin_pid(const struct process *process, uint32_t origin);

/* The process that it was forked from. The parent may have ended, and another child may have its place
 * now: the generation of the place tells. NULL if the parent is not seen yet, or is gone. */
struct process *process_parent(struct process *process);

/* Enters the blocks that a child has inherited into the child's books. Their stacks are copied from the
 * parent's books: the addresses stay, and each stack gets a number of the child's. When the child appears,
 * the parent's last stacks may not have been read yet. So this is called again before the child's books are
 * read. */
void process_inherit(struct process *process);

/* Keep the books within the memory that all processes share. Call process_look_for_room() before an entry in
 * the books, and process_weigh() after it. */
void process_look_for_room(struct process *process);
void process_look_for_maps_room(struct process *process); /* before its maps are read */
void process_weigh(struct process *process);

/* Finds the account of the process' memory: the plan's, or else its user's. For a process that has ended: the
 * account that was known before, or else its parent's. */
void process_find_account(struct process *process);

/* Whether the process still executes the program that we know, which has our region mapped. process_is_there:
 * true unless the answer is a sure no. */
enum region_mapped process_presence(const struct process *process);
bool process_is_there(const struct process *process);

/* Samples that the process has counted so far. */
uint64_t process_samples(const struct process *process);

/* Dumps that the process has asked the kernel for so far; counters.dumps of these have come. */
uint64_t process_dumps_asked(const struct process *process);

#endif

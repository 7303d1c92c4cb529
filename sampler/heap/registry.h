/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: every process that is profiled, from the claim of a region to its last profile.
 *
 *   ticket gone -> image, not ready
 *   header complete -> process at place 0, breakpoints
 *   children at other places
 *   process ends -> books closed (the listener is told once) -> released
 *   nobody maps the image's region any more -> image removed
 */
#ifndef SAMPLER_HEAP_REGISTRY_H
#define SAMPLER_HEAP_REGISTRY_H

#include "pprof/text/throttle.h"
#include "sampler/heap/backend_fallback.h"
#include "sampler/heap/choice.h"
#include "sampler/heap/intake.h"
#include "sampler/perf/probe.h"
#include "sampler/region/region_pool.h"
#include "sampler/target/launch.h"

#include <stdbool.h>
#include <sys/types.h>

struct registry {
	/* borrowed */
	struct intake *intake;    /* its list of images is the registry */
	struct region_pool *pool; /* NULL: none, all regions are offered */
	struct probe *probe;
	struct modules *modules;
	struct choice *choice; /* NULL: all programs are recorded */
	int epoll_fd;          /* pidfds are added here */
	int verbosity;
	struct heap_options heap;
	bool may_yield; /* backend auto: a breakpoint may be replaced by the copy backend */
	const struct launch *launch;
	struct target_listener listener; /* closed: ends in registry_release */

	struct backend_fallback fallback;

	bool command_seen;    /* it has loaded the library */
	bool containers_said; /* that what is in them is not profiled */
	/* a process had already ended when we first saw it, so we cannot learn of its end */
	bool unwatched;

	uint64_t arrivals;         /* processes ever watched */
	uint64_t requests;         /* for snapshots: how often a look found new ones in the shared memory */
	uint64_t incomplete;       /* images that claimed a region and never got ready */
	uint64_t declined;         /* images that could not use theirs */
	const char *declined_text; /* why, of the last one; NULL: none */
	uint64_t executed_unseen;  /* processes that executed a program that has not reported to us */
	char executed_text[TARGET_UNSEEN_BYTES]; /* target.unseen of the last one */
	const char *command_declined_text;       /* why, of COMMAND's; NULL: its was not among them */
	uint64_t unchosen;                       /* programs that were not recorded because of `choice` */
	char unchosen_title[TARGET_TITLE_BYTES]; /* of the last one */
	bool command_unchosen;                   /* COMMAND's last program */
	uint64_t linger_ns, executed_ns; /* last looks at what is left, and at what processes execute */
	size_t drained_most;             /* samples and frees of one image, at most, by the last drain */
	uint64_t drain_round;            /* registry_drain_some(): images whose number is another are due */
	uint32_t lingers;                /* looks at what is left, so far */
	uint64_t trimmed_ns;             /* when freed memory was last returned */
	bool to_trim;
	struct image **batch; /* settle_images() */
	size_t batch_capacity;
	struct region_search *searches; /* registry_look_who_maps() */
	size_t searches_capacity;
	struct throttle look_work; /* time of looks at who has anonymous memory mapped, in nanoseconds */
};

/* To be called once the borrowed fields are set. */
void registry_init(struct registry *registry);

/* Reads everything from the rings and the stack buffers, and logged frees. Returns the number of samples and
 * frees. */
size_t registry_drain(struct registry *registry);

/* The same for about so long: the rest is read by the next calls, before any image is read again. Of many
 * processes that allocate all the time, reading all takes seconds beside a load, and who asks is not answered
 * meanwhile. Where there are rings, which all share, everything is read. */
size_t registry_drain_some(struct registry *registry, uint64_t budget_ns);

/* The same of one image that is ready, or of the images of processes that are noted to have ended. Where
 * there are rings everything is read. */
void registry_drain_image(struct registry *registry, struct image *image);
void registry_drain_ended(struct registry *registry);

/* Notices claimed regions, prepares images, finds the places of forked children, releases what has ended.
 * Returns the number of new images. */
size_t registry_tend(struct registry *registry);

/* Closes the books of every process that is known and has ended, after it has read its last samples. */
void registry_finish_ended(struct registry *registry);

/* launch.pid has just been set: its program may have been found before. */
void registry_know_command(struct registry *registry);

/* The living process under that pid, or NULL. */
const struct process *registry_find(const struct registry *registry, pid_t pid);

void registry_release(struct registry *registry, struct process *process);

/* Takes over a region of an earlier sampler, with every process in it. Returns 0 or -ENOMEM (region
 * closed). */
int registry_adopt(struct registry *registry, struct region *region);

/* Takes a region that an image has offered: accepted, and turned on afterwards. */
struct registry_offer {
	struct region *region;    /* owned from now on, as the plan is, which may be NULL */
	struct target_plan *plan; /* by malloc */
	uint64_t period_bytes;
	pid_t pid;         /* who has it mapped */
	uint64_t after_ns; /* for how long it had run; 0: unknown */
	bool used;         /* an earlier daemon had turned it on */
};
int registry_take_offer(struct registry *registry, const struct registry_offer *offer);

/* The image that has this region; NULL: none. */
struct image *registry_image_of(const struct registry *registry, uint64_t ino);

/* A running process has taken the region, and is attached from now on. Returns 0 or -ENOMEM (region
 * closed). */
struct registry_attached {
	pid_t pid;
	uint64_t after_ns, rss_bytes; /* for how long it had run, and its resident memory */
	bool other_library;           /* its library is not the file on which the uprobe is */
	struct target_plan *plan;     /* by malloc, owned from now on; NULL: none */
	uint64_t period_bytes;        /* its own; 0: the session's */
};
int registry_attach(
    struct registry *registry, struct region *region, const struct registry_attached *attached);

/* Stops sampling in the images that were attached to; their processes still have the hooks. */
void registry_stop_attached(struct registry *registry);

/* Calls `visit` for each of their processes that lives; and closes the books of all of these. */
void registry_visit_attached(
    struct registry *registry, void (*visit)(void *context, const struct target *target), void *context);
void registry_close_attached(struct registry *registry);

/* The sampling period of all images, now and to come. */
void registry_set_period(struct registry *registry, uint64_t period_bytes);

/* Describes which programs could not be profiled; "" if there are none. */
void registry_describe_missed(const struct registry *registry, char *text, size_t bytes);

bool registry_empty(const struct registry *registry);

/* Processes that are recorded now: that execute the program which we know. */
size_t registry_running(const struct registry *registry);

/* Frees every image, whatever its state. */
void registry_fini(struct registry *registry);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roster: who is being profiled, from the claim of a region to the last look at it.
 *
 *   ticket gone -> image, not ready -> header complete: process at place 0, breakpoints -> children at other
 *   places process ends -> books closed (`closed` is called once) -> released nobody maps the image's region
 *   any more -> image gone
 */
#ifndef SAMPLER_ROSTER_H
#define SAMPLER_ROSTER_H

#include "sampler/intake.h"
#include "sampler/ladder.h"
#include "sampler/lobby.h"
#include "sampler/probe.h"

#include <stdbool.h>
#include <sys/types.h>

struct roster {
	/* borrowed */
	struct intake *intake; /* its list of images is the roster */
	struct lobby_state *lobby;
	struct probe *probe;
	struct modules *modules;
	int epoll_fd; /* pidfds are added here */
	int verbosity;
	unsigned int labels; /* enum heap_labels */
	bool may_yield;      /* the backend was our choice: a breakpoint may give way to the copy rung */
	/* Called when a process' books are closed; it must end in roster_release, now or later. */
	void (*closed)(void *context, struct process *process);
	void *context;

	struct ladder ladder;

	/* COMMAND, as the front tells */
	pid_t command; /* 0: not started yet */
	bool command_ended;
	bool front_gone; /* nobody will tell COMMAND's status */
	bool status_known;
	int command_status;
	bool command_seen; /* it has loaded the library */
	/* there was a process of whose end nothing tells us: it had ended when we first looked */
	bool unwatched;

	uint64_t arrivals;   /* processes ever watched */
	uint64_t requests;   /* for snapshots, that targets have made; counted by the album */
	uint64_t incomplete; /* images that claimed a region and never got ready */
	uint64_t linger_ns;
};

/* To be called once the borrowed fields are set. */
void roster_init(struct roster *roster);

/* Everything that lies in the rings and the stack buffers. Returns how many samples there were, and frees of
 * some. */
size_t roster_drain(struct roster *roster);

/* Takes claimed regions, readies images, finds forked children's places, lets go of what is over. Returns how
 * many images have come. */
size_t roster_tend(struct roster *roster);

/* Closes the books of every process that has ended. */
void roster_finish_ended(struct roster *roster);

/* The living process under that pid, or NULL. */
const struct process *roster_find(const struct roster *roster, pid_t pid);

void roster_release(struct roster *roster, struct process *process);

/* Takes over a region that an earlier sampler left, with every process in it. Returns 0 or -ENOMEM (region
 * closed). */
int roster_adopt(struct roster *roster, struct region *region);

/* The sampling period of all images, now and to come. */
void roster_set_period(struct roster *roster, uint64_t period_bytes);

/* Who could not be profiled, in words; an empty text if nobody. */
void roster_describe_missed(const struct roster *roster, char *text, size_t bytes);

bool roster_empty(const struct roster *roster);

/* Drops every image, whatever its state. */
void roster_fini(struct roster *roster);

#endif

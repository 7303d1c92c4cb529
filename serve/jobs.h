/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that takes long (decoding, adding up, views), done by a thread beside the one that talks to clients,
 * so that a large profile does not make the others wait. One at a time, of each client in turn; those with
 * profiles by samplers of other users when there are no others.
 *
 * run() is called there and may touch nothing but its job; done() is called in the thread of jobs_event().
 */
#ifndef SERVE_JOBS_H
#define SERVE_JOBS_H

#include "serve/connection_set.h"

#include <stdbool.h>

enum { JOBS_MAX = 64 };

struct job {
	struct job *next;
	void (*run)(struct job *job);
	void (*done)(struct job *job); /* owns the job from then on */
	bool foreign;                  /* with such a profile */
	struct client_key client;      /* who waits for it */
	bool refused;                  /* it was not run: it made room for another client's */
	uint64_t turn;                 /* the queue's own */
};

struct jobs;

struct jobs *jobs_new(int *error); /* starts the thread; NULL with -errno */
void jobs_free(struct jobs *jobs); /* waits for the one that runs; done() is called of all */

/* Where JOBS_MAX of its kind wait, the last one of a client with more of them is refused for it. False:
 * no client has more, and the job is the caller's. */
bool jobs_submit(struct jobs *jobs, struct job *job);

/* Readable when jobs are done. */
int jobs_fd(const struct jobs *jobs);
void jobs_event(struct jobs *jobs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that takes long, such as decoding and adding up profiles. A second thread does this work, so that a
 * large profile does not make other clients wait. It runs one job at a time, of one client after the other.
 * Jobs with profiles by samplers of other users come after all other jobs.
 *
 * run() is called in that thread and may touch nothing but its job. done() is called in the thread of
 * jobs_event().
 */
#ifndef SERVE_JOBS_H
#define SERVE_JOBS_H

#include "serve/client.h"

#include <stdbool.h>

enum { JOBS_MAX = 64 };

struct job {
	struct job *next;
	void (*run)(struct job *job);
	void (*done)(struct job *job); /* the job is done()'s from then on */
	bool foreign;                  /* it has a profile by another user's sampler */
	struct client_key client;      /* that waits for it */
	bool refused;                  /* it was not run, but made room for another client's job */
	uint64_t turn;                 /* the queue's own */
};

struct jobs;

struct jobs *jobs_new(int *error); /* starts the thread; NULL: *error is -errno */
void jobs_free(struct jobs *jobs); /* waits for the job that runs; calls done() of all jobs */

/* If JOBS_MAX jobs of its kind wait already, a client with more jobs loses its last one. False: no client has
 * more, and the job is still the caller's. */
bool jobs_submit(struct jobs *jobs, struct job *job);

/* Readable when jobs are done. */
int jobs_fd(const struct jobs *jobs);
void jobs_event(struct jobs *jobs);

#endif

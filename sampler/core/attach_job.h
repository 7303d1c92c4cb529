/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running process that is being attached to, by a child process of ours (sampler/inject/attacher.h). So a
 * process whose threads never come to a safe point holds up nobody else.
 *
 *     attach_job_start() -> the attacher's descriptor becomes readable -> attach_job_result()
 *         the process is attached:  attach_job_register(), which makes its run
 *         it could not be attached: the job is empty again
 */
#ifndef SAMPLER_CORE_ATTACH_JOB_H
#define SAMPLER_CORE_ATTACH_JOB_H

#include "sampler/books/arrivals.h"
#include "sampler/inject/attacher.h"
#include "sampler/inject/library_copy.h"
#include "sampler/linux/proc.h"

#include <stdint.h>
#include <sys/types.h>

struct attach_job {
	struct attacher attacher;
	struct region *region;          /* owned until the process uses it; NULL: the job is empty */
	struct arrivals_attached facts; /* facts.plan is owned for as long as the region is */
	uint64_t begun_ns;              /* monotonic */
};

/* Finds the library that attached processes load, and opens it. copy: becomes the path of the copy in
 * memory that they get. 0, or -errno: then library_copy->fd is -1. */
int attach_job_open_library(struct library_copy *library_copy, char copy[PROC_PATH_BYTES]);

/* What is known of a running process: its pid, age and resident memory. */
struct arrivals_attached attach_job_facts(pid_t pid);

/* Starts the attacher for job->region, and adds its descriptor to the epoll set. The wish says all but the
 * region. 0, or -errno: then the job is empty. */
int attach_job_start(struct attach_job *job, const struct attachment_wish *wish, int epoll_fd);

/* Waits for the attacher's result, and takes its descriptor out of the epoll set. 0, or -errno: the process
 * is not attached to, attachment->reason says why, and the job is empty. */
int attach_job_result(struct attach_job *job, int epoll_fd, struct attachment *attachment);

/* Hands the region and the facts to the registry, which makes the program run. The job is empty afterwards.
 * 0 or -ENOMEM. */
int attach_job_register(struct attach_job *job, struct registry *registry);

/* Frees what the job owns, and empties it. */
void attach_job_drop(struct attach_job *job);

#endif

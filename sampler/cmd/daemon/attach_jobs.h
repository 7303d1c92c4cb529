/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that the daemon attaches to: they offer no region, or a daemon that is not root cannot open
 * the offer. Each has a job of its own (sampler/core/attach_job.h).
 */
#ifndef SAMPLER_CMD_DAEMON_ATTACH_JOBS_H
#define SAMPLER_CMD_DAEMON_ATTACH_JOBS_H

#include "sampler/cmd/daemon/process_table.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct attach_job;

/* An empty job for a process of that account. NULL if the account has as many jobs already as are still
 * empty. So one account gets half of all jobs, and the next account a quarter. Processes that do not answer
 * block only processes of their own account. */
struct attach_job *attach_jobs_empty(struct daemon *daemon, const char *account);

/* Begins to attach to the process if the rules say so. has_library: it carries the library. False if there
 * is no empty job: try again later. */
bool attach_jobs_try(struct daemon *daemon, struct process_entry *entry, bool has_library);

/* Does a job have this region? Its process may have mapped the region already, and forked children too. */
bool attach_jobs_has_region(const struct daemon *daemon, uint64_t ino);

/* If the descriptor is that of a job, takes the job's result and returns true. */
bool attach_jobs_event(struct daemon *daemon, int fd);

/* Gives up jobs that have lasted for too long, and drops those that do not answer to that. */
void attach_jobs_give_up(struct daemon *daemon, uint64_t now_ns);

/* Gives up all jobs. */
void attach_jobs_end(struct daemon *daemon);

#endif

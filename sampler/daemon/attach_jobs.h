/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that offer nothing, or whose offer is closed to a daemon that is not root: they are attached
 * to, each by a child process (sampler/attach/attacher.h), so that the search for a safe point holds up
 * nobody.
 */
#ifndef SAMPLER_DAEMON_ATTACH_JOBS_H
#define SAMPLER_DAEMON_ATTACH_JOBS_H

#include "sampler/daemon/process_table.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct attach_job;

/* A free seat for a process of that account, if fewer of its processes are on their way than seats are free:
 * half of all for one account, a quarter for the next, so that processes that do not answer keep out nobody
 * but their own. NULL: none. */
struct attach_job *attach_jobs_seat(struct daemon *daemon, const char *account);

/* Begins, if the rules say so. has_library: it carries the library. Returns true: it is decided about;
 * false: too many are on their way. */
bool attach_jobs_try(struct daemon *daemon, struct process_entry *entry, bool has_library);

/* Is it the region of an attachment on its way? The process may have it already, and forked children too. */
bool attach_jobs_has_region(const struct daemon *daemon, uint64_t ino);

/* True: the descriptor belongs to an attachment on its way, whose result was taken. */
bool attach_jobs_event(struct daemon *daemon, int fd);

/* Gives up those that have been on their way for too long, and lets go of those that do not answer then. */
void attach_jobs_tend(struct daemon *daemon, uint64_t now_ns);

/* Gives up those that are on their way. */
void attach_jobs_end(struct daemon *daemon);

#endif

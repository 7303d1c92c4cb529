/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-over: finds the session that this program run was started in, and gets a region from it
 * (proto/region.h).
 *
 * It uses open, fstat, read, mmap and close on paths below /proc, system calls that the loader itself has
 * just used: a program run that is executed under a seccomp filter can still be profiled, whereas a socket
 * might get it killed. The kernel opens /proc/<sampler>/fd for nobody but the same user, or root; and of
 * what is there the library takes only what is root's or its own user's (owned_file.h). Nothing waits for
 * the sampler, except in region_socket.h.
 */
#ifndef PRELOAD_SESSION_H
#define PRELOAD_SESSION_H

#include "proto/region.h"

#include <stdbool.h>
#include <stdint.h>

/* Nothing is to be done in this process: the user says so (HEAPTAP_DISABLE), or it runs with more privileges
 * than whoever started it. */
bool session_forbidden(void);

/* A region for this program run, unmapped only by memory_limit.h. NULL: there is no session, or (*found)
 * no region for this program run, which is reported to the sampler if possible. filtered: a seccomp filter
 * is in force. */
struct region_header *session_region(bool filtered, bool *found);

/* For a program run that cannot use one: takes a region all the same, to say why in it. */
void session_refuse(bool filtered, enum region_declined reason);

/* The region at a path, or from a socket there, for a process that is attached to; in place of what is mapped
 * at `over`, if it has that many bytes. NULL: it is not there, or is none of ours. */
struct region_header *session_region_at(const char *path, void *over, uint64_t over_bytes);

/* Whether this is COMMAND's own process, whatever it has executed since. */
bool session_is_command(uint32_t pid);

/* Reports to the sampler why the region is not used. */
void session_decline(struct region_header *header, enum region_declined reason);

/* True if `bytes` are no more than a quarter of the program's limit, which was set for the program and not
 * for us. */
struct rlimit;
bool session_within(const struct rlimit *limit, uint64_t bytes);
bool session_affordable(int resource, uint64_t bytes);

/* The same without a system call, by the limits that were read or noted last. bytes: of address space;
 * private_bytes: those of them that count as data. False if no limits were read yet. */
bool session_affordable_later(uint64_t bytes, uint64_t private_bytes);

/* Notes a limit that the program has set. */
void session_note_limit(int resource, const struct rlimit *limit);

/* Reads the limits, by system calls: the program may have set them unseen, while it was detached from. */
void session_ask_limits(void);

#endif

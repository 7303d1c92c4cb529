/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-over: finds the session that this image was started in, and gets a region from it
 * (proto/region.h).
 *
 * It uses open, read, mmap and close on paths below /proc, which is what the loader itself has just used:
 * an image that is executed under a seccomp filter can still be profiled, where a socket would be its
 * death. The kernel's permission check on /proc/<sampler>/fd (same user, or privileged) is the check of
 * credentials in both directions. Nothing waits for the sampler, but for region_socket.h.
 */
#ifndef PRELOAD_SESSION_H
#define PRELOAD_SESSION_H

#include "proto/region.h"

#include <stdbool.h>
#include <stdint.h>

/* A region for this image, mapped for good. NULL: there is no session, or no region for this image, which the
 * sampler is told if possible. filtered: a seccomp filter is in force. */
struct region_header *session_region(bool filtered);

/* Whether this is COMMAND's own process, whatever it has executed since. */
bool session_is_command(uint32_t pid);

/* Gives a region back, and says why. */
void session_decline(struct region_header *header, enum region_declined reason);

/* True if `bytes` more are no more than a quarter of what the program may have: its limit was made for it,
 * not for us. */
bool session_affordable(int resource, uint64_t bytes);

#endif

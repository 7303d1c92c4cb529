/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that offer nothing, or whose offer is closed to a daemon that is not root: they are attached to. */
#ifndef SAMPLER_DAEMON_ATTACHING_H
#define SAMPLER_DAEMON_ATTACHING_H

#include "sampler/daemon/roster.h"

struct daemon;

/* If the rules say so. has_library: it carries the library. Returns true: it is decided about. */
bool attaching_try(struct daemon *daemon, struct roster_entry *entry, bool has_library);

#endif

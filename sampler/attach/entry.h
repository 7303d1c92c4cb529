/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function in a process, in whichever of its threads is at a safe point first. */
#ifndef SAMPLER_ATTACH_ENTRY_H
#define SAMPLER_ATTACH_ENTRY_H

#include "sampler/attach/remote_call.h"
#include "sampler/attach/safe_point.h"

struct entry {
	/* set by the caller before entry_open */
	int cancel_fd; /* readable: no more looking for a thread. -1: none */
	bool force;    /* a thread with a seccomp filter will do */

	struct address_space *space; /* NULL: not open */
	struct safe_point point;
	struct remote_code code;
	uint64_t dlopen; /* its address; 0: not found */

	/* of the last call */
	uint64_t stood_ns;
	uint32_t tries;
	char reason[160]; /* why it failed */
};

/* Returns 0 or -errno with a reason. */
int entry_open(struct entry *entry, struct address_space *space, struct modules *modules);
void entry_close(struct entry *entry);

/* Fills in what the call does not say: space and code. Returns 0: the function has returned; -ECANCELED:
 * it was given up; or -errno; with a reason. */
int entry_call(struct entry *entry, const struct remote_call *wish);

#endif

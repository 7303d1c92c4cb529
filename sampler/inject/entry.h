/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function in a process, in the first of its threads that is found at a safe point. */
#ifndef SAMPLER_INJECT_ENTRY_H
#define SAMPLER_INJECT_ENTRY_H

#include "sampler/inject/remote_call.h"
#include "sampler/inject/safe_point.h"

struct entry {
	/* set by the caller before entry_open */
	int cancel_fd; /* the search for a thread ends when this is readable; -1: none */
	bool force;    /* also use threads with a seccomp filter */

	struct address_space *space; /* NULL: not open */
	struct safe_point point;
	struct remote_code code;
	uint64_t dlopen; /* its address; 0 if it is not found */

	/* of the last call */
	uint64_t stood_ns;
	uint32_t tries;
	char reason[160]; /* why it failed */
};

/* Returns 0, or -errno with a reason. */
int entry_open(struct entry *entry, struct address_space *space, struct modules *modules);
void entry_close(struct entry *entry);

/* Fills in `space` and `code` of the call. Returns 0 if the function has returned; else -ECANCELED if the
 * search was given up, or -errno; with a reason. */
int entry_call(struct entry *entry, const struct remote_call *wish);

#endif

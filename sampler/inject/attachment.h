/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaching to a running process: finds a thread at a safe point, and makes it load libheaptap-attach.so, or
 * call into it if it has the library already. The library takes the region from there (preload/running.c).
 */
#ifndef SAMPLER_INJECT_ATTACHMENT_H
#define SAMPLER_INJECT_ATTACHMENT_H

#include "sampler/inject/library_copy.h"
#include "sampler/intake/region.h"
#include "sampler/linux/thread_facts.h"
#include "sampler/unwind/module.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attachment_wish {
	pid_t pid;
	/* to attach: the program execution that was chosen; all zero: whatever the process executes now */
	struct thread_birth birth;
	struct modules *modules;
	int cancel_fd; /* the search for a safe point is given up when this is readable; -1: none */
	bool force;    /* also use threads with a seccomp filter */
	/* to attach: the region, mapped and not in use yet; and the library */
	const struct region *region;
	const struct library_copy *library_copy;
};

struct attachment {
	/* results, for the user */
	uint64_t stood_ns; /* for how long the thread stood still, at most */
	uint32_t tries;    /* threads that were looked at until one was at a safe point */
	bool reused;       /* the library was there already */
	bool by_file;      /* the library came as a file, and not from memory */
	char reason[200];  /* why it failed */
};

/* Returns 0 if the process uses the region; else -ECANCELED or -errno, with a reason. Whatever happens, the
 * process runs on as before. */
int attachment_begin(struct attachment *attachment, const struct attachment_wish *wish);

/* Takes the hooks out again. -ENOENT if the process is not attached. */
int attachment_end(struct attachment *attachment, const struct attachment_wish *wish);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaching to a running process: finds a thread at a safe point, and makes it load libheaptap-attach.so, or
 * call into it if it has the library already. The library takes the region from there (preload/running.c).
 */
#ifndef SAMPLER_ATTACH_ATTACHMENT_H
#define SAMPLER_ATTACH_ATTACHMENT_H

#include "sampler/region/region.h"
#include "sampler/unwind/module.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attachment {
	/* results, for the user */
	uint64_t stood_ns; /* for how long the thread stood still, at most */
	uint32_t tries;    /* threads that were looked at until one was at a safe point */
	bool reused;       /* the library was there */
	char reason[160];  /* why it failed */
};

/* library_fd: of libheaptap-attach.so (delivery.h); region: mapped, not used by anybody yet. Returns 0: the
 * process uses the region; or -errno with a reason. Whatever happens the process runs on as it was. */
int attachment_begin(struct attachment *attachment, pid_t pid, const struct region *region,
    struct modules *modules, int library_fd);

/* Takes the hooks out again. -ENOENT: the process is not attached. */
int attachment_end(struct attachment *attachment, pid_t pid, struct modules *modules);

#endif

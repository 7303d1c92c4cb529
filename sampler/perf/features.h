/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's perf_event_open knows. A kernel refuses an attribute that is newer than itself with
 * EINVAL, whichever it was, and distributions take single ones into older kernels: so each is tried once, by
 * itself, on an event of our own that counts nothing.
 */
#ifndef SAMPLER_PERF_FEATURES_H
#define SAMPLER_PERF_FEATURES_H

#include <stdbool.h>

enum features {
	FEATURES_DATA_PAGE_SIZE, /* Linux 5.11: the size of a faulting page */
	FEATURES_BUILD_ID, /* 5.12: build ids in the records of mappings; before, files are told by inode */
	FEATURES_REMOVE_ON_EXEC, /* 5.13: see backend_fallback_executed() */
	FEATURES_LOST,           /* 6.0: how many samples of an event were lost */
	FEATURES_COUNT,
};

/* False only if the kernel does not know it. Where no event may be opened at all it does not matter. */
bool features_has(enum features feature);

/* What stands between us and perf_event_open. */
enum features_obstacle {
	FEATURES_REACHED,  /* nothing: what it refuses depends on the event */
	FEATURES_FILTERED, /* a seccomp filter, or a kernel without CONFIG_PERF_EVENTS */
	/* perf_event_paranoid is 3 or more (a patch of Debian's, 4 in Ubuntu's): for CAP_SYS_ADMIN. Where the
	 * kernel looks at the attributes first, REACHED. */
	FEATURES_PARANOID,
};

/* Asked by a call that no kernel can carry out. */
enum features_obstacle features_obstacle(void);

#endif

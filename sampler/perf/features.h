/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's perf_event_open knows. A kernel refuses every attribute newer than itself with the same
 * EINVAL, and distributions take single attributes into older kernels. So each is tried once, by itself, on
 * an event of our own that counts nothing.
 */
#ifndef SAMPLER_PERF_FEATURES_H
#define SAMPLER_PERF_FEATURES_H

#include <stdbool.h>

enum features {
	FEATURES_DATA_PAGE_SIZE, /* Linux 5.11: the size of a faulting page */
	FEATURES_BUILD_ID, /* 5.12: build ids in the records of mappings; before, inodes identify files */
	FEATURES_REMOVE_ON_EXEC, /* 5.13: see backend_fallback_executed() */
	FEATURES_LOST,           /* 6.0: how many samples of an event were lost */
	FEATURES_COUNT,
};

/* False only if the kernel does not know the feature. True if no event may be opened at all: then it does not
 * matter. */
bool features_has(enum features feature);

/* What stands between us and perf_event_open. */
enum features_obstacle {
	FEATURES_REACHED,  /* nothing: whether an event is refused depends on the event */
	FEATURES_FILTERED, /* a seccomp filter, or a kernel without CONFIG_PERF_EVENTS */
	/* perf_event_paranoid is 3 or more (a patch of Debian; 4 in Ubuntu's), and we lack CAP_SYS_ADMIN. A
	 * kernel that looks at the attributes first yields REACHED. */
	FEATURES_PARANOID,
};

/* Finds out by a call that no kernel can carry out. */
enum features_obstacle features_obstacle(void);

#endif

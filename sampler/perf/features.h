/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's perf_event_open knows, and why it refuses. A kernel refuses every attribute newer than
 * itself with the same EINVAL, and distributions take single attributes into older kernels. So each attribute
 * is tried once, by itself, on an event of our own that counts nothing.
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

/*
 * ---- why the kernel refuses perf events, and what helps
 *
 * The one wording of each reason, for record, doctor, profiles of events and messages. A reason completes
 * "perf events are ..." or "do not work: ...".
 */

/* What hides the kernel's side of an event from a user: no refusal of the event. */
#define FEATURES_USER_SIDE \
	"the program's side only: kernel.perf_event_paranoid hides the kernel's from this user"

/* Docker's profile since 23.0 allows perf_event_open with CAP_PERFMON; podman's wanted CAP_SYS_ADMIN as well
 * until the end of 2025 (containers/common, seccomp.json). */
#define FEATURES_CONTAINER_REMEDY                                                                        \
	"docker run --cap-add PERFMON, podman run --cap-add PERFMON,SYS_ADMIN, or a seccomp profile of " \
	"your own"

/* error: -errno of perf_event_open. Is it a matter of permission? */
bool features_refusal_is_permission(int error);

/* The reason in words; strerror() if it is none of ours. */
const char *features_refusal_reason(int error);

/* What helps; "" if nothing is known. */
const char *features_refusal_remedy(int error);

#endif

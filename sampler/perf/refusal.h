/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the kernel refuses perf events, and what helps: the one wording of each reason, for record, doctor,
 * profiles of events and messages. A reason completes "perf events are ..." or "do not work: ...".
 */
#ifndef SAMPLER_PERF_REFUSAL_H
#define SAMPLER_PERF_REFUSAL_H

#include <stdbool.h>

/* What hides the kernel's side of an event from a user: no refusal of the event. */
#define REFUSAL_USER_SIDE \
	"the program's side only: kernel.perf_event_paranoid hides the kernel's from this user"

/* Docker's profile since 23.0 allows perf_event_open with CAP_PERFMON; podman's wanted CAP_SYS_ADMIN as well
 * until the end of 2025 (containers/common, seccomp.json). */
#define REFUSAL_CONTAINER_REMEDY                                                                         \
	"docker run --cap-add PERFMON, podman run --cap-add PERFMON,SYS_ADMIN, or a seccomp profile of " \
	"your own"

/* error: -errno of perf_event_open. Is it a matter of permission? */
bool refusal_is_permission(int error);

/* The reason in words; strerror() if it is none of ours. */
const char *refusal_reason(int error);

/* What helps; "" if nothing is known. */
const char *refusal_remedy(int error);

#endif

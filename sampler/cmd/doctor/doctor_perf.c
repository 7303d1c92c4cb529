/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/doctor/doctor_perf.h"

#include "sampler/perf/features.h"

#include <stdio.h>
#include <string.h>

enum { OLDEST_MAJOR = 4, OLDEST_MINOR = 18 };

/* 3 and 4 are Debian's and Ubuntu's own: they refuse all events without CAP_SYS_ADMIN. */
enum { PARANOID_MOST = 2 };

enum { IPC_LOCK = 14, SYS_PTRACE = 19, SYS_ADMIN = 21, PERFMON = 38 }; /* linux/capability.h */

bool doctor_perf_new_enough(const char *release)
{
	int major, minor;

	if (sscanf(release, "%d.%d", &major, &minor) != 2)
		return true;
	return major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR);
}

void doctor_perf_describe_capabilities(uint64_t capabilities, char *text, size_t bytes)
{
	static const struct {
		unsigned bit;
		const char *name;
	} known[] = {{SYS_ADMIN, ", CAP_SYS_ADMIN"}, {PERFMON, ", CAP_PERFMON"}, {IPC_LOCK, ", CAP_IPC_LOCK"},
	    {SYS_PTRACE, ", CAP_SYS_PTRACE"}};
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (capabilities >> known[i].bit & 1 && at + strlen(known[i].name) < bytes) {
			strcpy(text + at, known[i].name);
			at += strlen(known[i].name);
		}
}

const char *doctor_perf_uprobe_remedy(uint64_t capabilities, enum features_obstacle obstacle)
{
	if (obstacle == FEATURES_FILTERED)
		return "a container's seccomp profile that allows perf_event_open, and CAP_SYS_ADMIN: docker "
		       "or podman run --privileged has both";
	if (!(capabilities >> SYS_ADMIN & 1))
		return "run as root: uprobes need CAP_SYS_ADMIN, CAP_PERFMON alone is refused";
	return "a kernel with CONFIG_UPROBE_EVENTS, not locked down (kernel_lockdown(7)); in a container the "
	       "machine's own root";
}

const char *doctor_perf_breakpoint_remedy(enum features_obstacle obstacle, long paranoid)
{
	bool beyond = paranoid > PARANOID_MOST;

	switch (obstacle) {
	case FEATURES_FILTERED:
		return beyond
		    ? "docker or podman run --privileged; or on the machine: sudo sysctl "
		      "kernel.perf_event_paranoid=2, and in the container: " FEATURES_CONTAINER_REMEDY
		    : "in a container: " FEATURES_CONTAINER_REMEDY;
	case FEATURES_PARANOID:
	case FEATURES_REACHED:
	default:
		return beyond
		    ? "sudo sysctl kernel.perf_event_paranoid=2, on the machine itself; above that "
		      "CAP_SYS_ADMIN is needed, CAP_PERFMON is refused"
		    : "a kernel and a security module (SELinux, AppArmor) that permit perf_event_open";
	}
}

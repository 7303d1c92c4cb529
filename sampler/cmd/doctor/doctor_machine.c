/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/doctor/doctor_machine.h"

#include "sampler/cmd/doctor/doctor_process.h"
#include "sampler/cmd/doctor/finding.h"
#include "sampler/core/heap_capture_options.h"
#include "sampler/inject/preload_check.h"
#include "sampler/inject/preload_library.h"
#include "sampler/linux/memory_file.h"
#include "sampler/linux/pidfd.h"
#include "sampler/perf/event_attr.h"
#include "sampler/perf/features.h"
#include "sampler/perf/probe.h"
#include "sampler/write/threshold_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- what is known of kernels and capabilities */

enum { OLDEST_MAJOR = 4, OLDEST_MINOR = 18 };

/* 3 and 4 are Debian's and Ubuntu's own: they refuse all events without CAP_SYS_ADMIN. */
enum { PARANOID_MOST = 2 };

enum { IPC_LOCK = 14, SYS_PTRACE = 19, SYS_ADMIN = 21, PERFMON = 38 }; /* linux/capability.h */

bool doctor_machine_new_enough(const char *release)
{
	int major, minor;

	if (sscanf(release, "%d.%d", &major, &minor) != 2)
		return true;
	return major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR);
}

void doctor_machine_describe_capabilities(uint64_t capabilities, char *text, size_t bytes)
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

const char *doctor_machine_uprobe_remedy(uint64_t capabilities, enum features_obstacle obstacle)
{
	if (obstacle == FEATURES_FILTERED)
		return "a container's seccomp profile that allows perf_event_open, and CAP_SYS_ADMIN: docker "
		       "or podman run --privileged has both";
	if (!(capabilities >> SYS_ADMIN & 1))
		return "run as root: uprobes need CAP_SYS_ADMIN, CAP_PERFMON alone is refused";
	return "a kernel with CONFIG_UPROBE_EVENTS, not locked down (kernel_lockdown(7)); in a container the "
	       "machine's own root";
}

const char *doctor_machine_breakpoint_remedy(enum features_obstacle obstacle, long paranoid)
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

/* ---- what is found here */

static long read_number(const char *path, long missing)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return missing;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	return *text ? strtol(text, NULL, 10) : missing;
}

/* The library looks there too (preload/overcommit.h). */
static void examine_overcommit(struct findings *findings)
{
	if (read_number("/proc/sys/vm/overcommit_memory", 0) == 2)
		finding_say(findings, FINDING_BAD,
		    "sysctl vm.overcommit_memory=0, if what runs here allows it",
		    "vm.overcommit_memory is 2: no heap is profiled, since the kernel may refuse a page of "
		    "heaptap's memory when a program first uses it, which would end the program");
}

static void examine_kernel(struct findings *findings)
{
	struct utsname name;
	int fd;

	if (uname(&name) == 0 && doctor_machine_new_enough(name.release))
		finding_say(findings, FINDING_GOOD, NULL, "kernel %s on %s", name.release, name.machine);
	else if (uname(&name) == 0)
		finding_say(findings, FINDING_NOTE, "use Linux " DOCTOR_MACHINE_OLDEST " or later",
		    "kernel %s on %s is older than heaptap is written for: it may work, with the copy "
		    "backend",
		    name.release, name.machine);
	fd = memory_file_create("heaptap-doctor");
	if (fd < 0)
		finding_say(findings, FINDING_BAD, "allow memfd_create in the container's seccomp profile",
		    "cannot create shared memory: %s", strerror(-fd));
	else
		close(fd);
}

enum { NO_PERF_EVENTS = -100 };

static long read_paranoid(void)
{
	return read_number("/proc/sys/kernel/perf_event_paranoid", NO_PERF_EVENTS);
}

/* Reports what the kernel's settings allow. What the kernel allows in fact is tried next. */
static void examine_paranoia(struct findings *findings)
{
	long paranoid = read_paranoid();
	long mlock = read_number("/proc/sys/kernel/perf_event_mlock_kb", 0);
	enum features_obstacle obstacle = features_obstacle();

	unsigned long long capabilities = 0;
	char held[128];
	int seccomp = 0;

	doctor_process_capabilities(getpid(), &capabilities, &seccomp);
	doctor_machine_describe_capabilities(capabilities, held, sizeof(held));
	if (paranoid == NO_PERF_EVENTS)
		finding_say(findings, FINDING_NOTE, features_refusal_remedy(-ENOSYS), "%s",
		    features_refusal_reason(-ENOSYS));
	else
		finding_say(findings, FINDING_GOOD, NULL,
		    "perf_event_paranoid %ld, perf_event_mlock_kb %ld, uid %d%s", paranoid, mlock,
		    (int)getuid(), held);
	if (seccomp == 2)
		finding_say(findings, FINDING_NOTE, NULL, "this process has a seccomp filter, which %s",
		    obstacle == FEATURES_FILTERED ? "forbids perf_event_open" : "allows perf_event_open");
}

static bool try_backend(
    struct findings *findings, enum backend backend, const char *library, const char *gain, const char *fix)
{
	struct probe probe;
	int err = probe_open(&probe, backend, library, STACK_BYTES_DEFAULT, PERIOD_BYTES_DEFAULT);

	if (err) {
		finding_say(findings, FINDING_NOTE, fix, "backend %s: %s", backend_name(backend),
		    *probe.reason ? probe.reason : strerror(-err));
		return false;
	}
	finding_say(findings, FINDING_GOOD, NULL, "backend %s: %s", backend_name(backend), gain);
	probe_close(&probe);
	return true;
}

/* True if the library is there and whole; else after a finding. */
static bool examine_library(
    struct findings *findings, const char *name, int (*find)(char *path, size_t path_bytes), char *library)
{
	const bool copied = find == attach_library_find;
	char why[PRELOAD_CHECK_WHY_BYTES], fix[128];

	if (find(library, PATH_MAX)) {
		snprintf(fix, sizeof(fix), "make install, or keep %s beside heaptap", name);
		finding_say(findings, FINDING_BAD, fix, "%s is not found", name);
		return false;
	}
	if (preload_check_library(library, copied, why)) {
		finding_say(findings, FINDING_BAD, "install heaptap again", "%s %s", library, why);
		return false;
	}
	return true;
}

static void examine_backends(struct findings *findings)
{
	char library[PATH_MAX];
	enum features_obstacle obstacle = features_obstacle();

	unsigned long long capabilities = 0;
	int seccomp;

	doctor_process_capabilities(getpid(), &capabilities, &seccomp);
#if defined(__x86_64__)
	(void)examine_library(findings, ATTACH_LIBRARY_NAME, attach_library_find, library);
#endif
	if (!examine_library(findings, PRELOAD_LIBRARY_NAME, preload_library_find, library))
		return;
	if (!preload_library_is_preloadable(library))
		finding_say(findings, FINDING_BAD, "install to a path without spaces, ':' and '$'",
		    "LD_PRELOAD cannot hold the path %s", library);
	else
		finding_say(findings, FINDING_GOOD, NULL, "library %s", library);
	if (try_backend(findings, BACKEND_UPROBE, library,
	        "the kernel copies stacks, at no cost between samples",
	        doctor_machine_uprobe_remedy(capabilities, obstacle)))
		return;
	(void)try_backend(findings, BACKEND_BREAKPOINT, library,
	    "for -b breakpoint, at about 1 us per context switch",
	    doctor_machine_breakpoint_remedy(obstacle, read_paranoid()));
	finding_say(findings, FINDING_GOOD, NULL,
	    "backend copy: always available; the program copies its stacks itself");
}

/* Only a note if it fails: events are optional. */
static void examine_events(struct findings *findings)
{
	struct event event;
	char reason[512];
	const char *fix = "";

	if (event_parse("cpu-clock", &event, reason, sizeof(reason)) != 0)
		finding_say(findings, FINDING_NOTE, NULL, "record -e: %s", reason);
	else if (event_try(&event, reason, sizeof(reason), &fix) != 0)
		finding_say(
		    findings, FINDING_NOTE, *fix ? fix : NULL, "record -e samples no events: %s", reason);
	else
		finding_say(findings, FINDING_GOOD, NULL,
		    "record -e samples events%s (`heaptap events` lists them)",
		    event.kernel_refused ? ", the program's side only" : "");
}

static void examine_symbols(struct findings *findings)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (access("/usr/lib/debug", R_OK) == 0)
		finding_say(findings, FINDING_GOOD, NULL, "debug info: /usr/lib/debug exists");
	else
		finding_say(findings, FINDING_NOTE,
		    "install the -dbgsym packages of the libraries you care about",
		    "debug info: no /usr/lib/debug; functions of stripped files are named by address");
	if (urls && *urls)
		finding_say(findings, FINDING_NOTE, NULL,
		    "DEBUGINFOD_URLS is set; heaptap asks these servers only with record --debuginfod");
}

/* For the process whose id `name` is, else for a process that is started here. Only a note if memory.high
 * cannot be watched: other thresholds can. */
static void examine_memory_high(struct findings *findings, const char *name)
{
	struct oom_watch process;
	struct memory_high *list = NULL, *cgroup = NULL;
	char text[512], *end = NULL;
	long pid = name ? strtol(name, &end, 10) : 0;
	bool watched;

	if (pid <= 0 || *end || kill((pid_t)pid, 0) != 0)
		pid = getpid();
	oom_watch_init(&process);
	oom_watch_update(&process, (pid_t)pid);
	if (*process.cgroup)
		cgroup = memory_high_get(&list, process.version, process.cgroup, NULL, 1);
	threshold_describe_memory_high(cgroup, text, sizeof(text));
	watched = cgroup && cgroup->answer == MEMORY_HIGH_WATCHED;
	finding_say(findings, watched ? FINDING_GOOD : FINDING_NOTE, NULL, "record --on memory.high%s %s",
	    watched ? " watches" : ": no effect:", text);
	memory_high_put(cgroup);
	oom_watch_fini(&process);
}

void doctor_machine_examine(struct findings *findings, const char *name)
{
	examine_kernel(findings);
	examine_overcommit(findings);
	examine_paranoia(findings);
	examine_backends(findings);
	examine_events(findings);
	examine_symbols(findings);
	examine_memory_high(findings, name);
}

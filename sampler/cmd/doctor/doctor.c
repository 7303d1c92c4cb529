/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap doctor [PID | PROGRAM]: tries what this kernel, user and container allow, and finds what heaptap
 * would not see of a program or a process. Each problem is reported with the command that fixes it.
 */
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/doctor/doctor_machine.h"
#include "sampler/cmd/doctor/doctor_process.h"
#include "sampler/cmd/doctor/doctor_program.h"
#include "sampler/cmd/doctor/doctor_unit.h"
#include "sampler/cmd/doctor/finding.h"
#include "sampler/core/control_client.h"
#include "sampler/inject/script_line.h"
#include "sampler/linux/installed_file.h"
#include "sampler/linux/regular_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

< < < < < < < HEAD static long read_number(const char *path, long missing)
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

	if (uname(&name) == 0 && doctor_perf_new_enough(name.release))
		finding_say(findings, FINDING_GOOD, NULL, "kernel %s on %s", name.release, name.machine);
	else if (uname(&name) == 0)
		finding_say(findings, FINDING_NOTE, "use Linux " DOCTOR_PERF_OLDEST " or later",
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
	doctor_perf_describe_capabilities(capabilities, held, sizeof(held));
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
	        doctor_perf_uprobe_remedy(capabilities, obstacle)))
		return;
	(void)try_backend(findings, BACKEND_BREAKPOINT, library,
	    "for -b breakpoint, at about 1 us per context switch",
	    doctor_perf_breakpoint_remedy(obstacle, read_paranoid()));
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

#define PRELOAD_FILE "/etc/ld.so.preload"

enum { REASON_BYTES = 4096 };

||||||| parent of 1e6c905e (doctor: three files by what is examined: the machine, the units, a program or process)
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

	if (uname(&name) == 0 && doctor_perf_new_enough(name.release))
		finding_say(findings, FINDING_GOOD, NULL, "kernel %s on %s", name.release, name.machine);
	else if (uname(&name) == 0)
		finding_say(findings, FINDING_NOTE, "use Linux " DOCTOR_PERF_OLDEST " or later",
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
	doctor_perf_describe_capabilities(capabilities, held, sizeof(held));
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
	        doctor_perf_uprobe_remedy(capabilities, obstacle)))
		return;
	(void)try_backend(findings, BACKEND_BREAKPOINT, library,
	    "for -b breakpoint, at about 1 us per context switch",
	    doctor_perf_breakpoint_remedy(obstacle, read_paranoid()));
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

#define PRELOAD_FILE "/etc/ld.so.preload"

enum { REASON_BYTES = 4096 };

=======
>>>>>>> 1e6c905e (doctor: three files by what is examined: the machine, the units, a program or process)
/* ---- the daemon */

static void examine_profiled(struct findings *findings, const struct control_list *list, const char *target)
{
	char *end;
	long pid = target ? strtol(target, &end, 10) : 0;

	if (pid <= 0 || *end)
		return;
	for (size_t i = 0; i < list->process_count; i++) {
		const struct control_process *process = &list->processes[i];

		if (process->pid != pid)
			continue;
		if (process->profiled)
			finding_say(findings, FINDING_GOOD, NULL, "the daemon profiles %ld as service %s",
			    pid, process->service);
		else
			finding_say(findings, FINDING_NOTE, NULL, "the daemon does not profile %ld: %s", pid,
			    process->reason);
		return;
	}
	finding_say(findings, FINDING_NOTE, "heaptap enable UNIT, and start the service again",
	    "the daemon knows no process %ld: it does not carry the library", pid);
}

static void examine_list(struct findings *findings, const struct control_list *list)
{
	const struct control_daemon *daemon = &list->daemon;
	size_t profiled = 0;

	for (size_t i = 0; i < list->process_count; i++)
		profiled += list->processes[i].profiled;
	finding_say(findings, FINDING_GOOD, NULL,
	    "daemon %d profiles %zu of %zu processes (`heaptap status` lists them)", (int)daemon->pid,
	    profiled, list->process_count);
	if (*daemon->version && strcmp(daemon->version, HEAPTAP_VERSION) != 0)
		finding_say(findings, FINDING_NOTE, "start the daemon again: systemctl restart heaptapd",
		    "the daemon is of version %s, this program of %s", daemon->version, HEAPTAP_VERSION);
	if (*daemon->off)
		finding_say(findings, FINDING_NOTE, "heaptap enable --now", "the daemon samples nothing: %s",
		    daemon->off);
	for (size_t i = 0; i < list->denied_count; i++)
		finding_say(findings, FINDING_NOTE, NULL, "the daemon does not profile %s: %s",
		    list->denied[i].exe, list->denied[i].reason);
	for (size_t i = 0; i < list->note_count; i++)
		finding_say(findings, FINDING_NOTE, NULL, "the daemon says: %s", list->notes[i]);
}

/* Does a daemon run, and what does it refuse to profile? target: the pid of a process to look for in the
 * daemon's list, or NULL. */
static void examine_daemon(struct findings *findings, const char *socket, const char *target)
{
	struct control_list list;
	char reason[512];
	int error = control_client_list(socket, &list, reason, sizeof(reason));

	if (error) {
		finding_say(findings, FINDING_NOTE,
		    error == -ENOENT || error == -ECONNREFUSED
		        ? "systemctl start heaptapd, or: heaptap daemon (record needs none)"
		        : NULL,
		    "%s", reason);
		return;
	}
	examine_list(findings, &list);
	examine_profiled(findings, &list, target);
	control_list_fini(&list);
}

/* ---- a process or a program */

enum { SCRIPT_DEPTH = 4 }; /* interpreters that are scripts themselves; the kernel has the same limit */

/* The beginning of a regular file. Returns its length, or -errno after a line. */
static ssize_t head_read(const char *path, char *head, size_t head_bytes)
{
	struct stat status;
	int fd = regular_file_open(AT_FDCWD, path, 0, &status);
	ssize_t got = fd < 0 ? fd : pread(fd, head, head_bytes, 0);

	if (fd >= 0)
		close(fd);
	if (fd != -EINVAL && got < 0)
		log_line("cannot read %s: %s", path, strerror(fd < 0 ? -fd : errno));
	else if (got < 0)
		log_line(stat(path, &status) == 0 && S_ISDIR(status.st_mode)
		        ? "%s is a folder: name a program in it"
		        : "%s is no file that can be executed: a device, a pipe or a socket",
		    path);
	return got < 0 ? (fd < 0 ? fd : -EIO) : got;
}

/* A file without ELF header and "#!": execvp and shells let /bin/sh run it, if it is executable text. */
static int resolve_other(struct findings *findings, const char *path, const char *head, ssize_t length,
    char *program, size_t program_bytes)
{
	bool bare = length >= 2 && memcmp(head, "#!", 2) == 0;

	if (length > 0 && access(path, X_OK) == 0 && !memchr(head, '\0', (size_t)length)) {
		finding_say(findings, FINDING_NOTE, "begin it with a line such as #!/bin/sh",
		    "%s is a script %s: /bin/sh runs it, and is judged below", path,
		    bare ? "with a #! that names no program" : "without a #! line");
		snprintf(program, program_bytes, "/bin/sh");
		return 0;
	}
	log_line("%s is no program: %s", path,
	    length == 0 ? "the file is empty"
	        : bare  ? "its #! names none, and it has no execute permission"
	                : "neither an ELF file nor a script with a #! line");
	return -ENOEXEC;
}

/* The file is judged further: the findings hold once it may be executed. */
static void say_forbidden(struct findings *findings, const char *path)
{
	struct stat status;
	char fix[PATH_MAX + 64];

	if (access(path, X_OK) == 0 || stat(path, &status) != 0)
		return;
	snprintf(fix, sizeof(fix), "chmod +x %s", path);
	if (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH))
		finding_say(findings, FINDING_BAD,
		    "look at its mode, its owner, and whether its file system is mounted noexec",
		    "%s may not be executed by you", path);
	else
		finding_say(
		    findings, FINDING_BAD, fix, "%s has no execute permission: it cannot be started", path);
}

static int fail_missing(struct findings *findings, const char *path, const char *interpreter)
{
	bool carriage = strchr(interpreter, '\r') != NULL;

	if (access(interpreter, F_OK) == 0 && strchr(interpreter, '/')) {
		finding_say(findings, FINDING_BAD, "correct the first line, or make that file executable",
		    "%s is a script for %s, which may not be executed", path, interpreter);
		return -EACCES;
	}
	finding_say(findings, FINDING_BAD,
	    carriage ? "end its lines with LF: dos2unix" : "install it, or correct the first line",
	    carriage ? "%s is a script for %s, with a carriage return: there is no such program"
	             : "%s is a script for %s: there is no such program",
	    path, interpreter);
	return -ENOENT;
}

/* One step, from a script to its interpreter, which is looked up as the kernel or env does. */
static int step(struct findings *findings, const struct script_line *line, char *program, size_t bytes)
{
	char script[PATH_MAX], wanted[SCRIPT_LINE_BYTES];
	bool by_env = script_line_env(line, wanted);

	snprintf(script, sizeof(script), "%s", program);
	if (by_env && access(line->interpreter, X_OK) == 0 && *wanted) {
		if (!installed_file_in_path(wanted, program, bytes))
			return fail_missing(findings, script, wanted);
		finding_say(findings, FINDING_GOOD, NULL,
		    "%s is a script for %s, which %s finds as %s: that is judged below", script, wanted,
		    line->interpreter, program);
		return 0;
	}
	if (access(line->interpreter, X_OK) != 0)
		return fail_missing(findings, script, line->interpreter);
	snprintf(program, bytes, "%s", line->interpreter);
	finding_say(
	    findings, FINDING_GOOD, NULL, "%s is a script for %s: that is judged below", script, program);
	return 0;
}

/*
 * Writes the path of the ELF file that runs for `path` into `program`: `path` itself, or its last
 * interpreter. Each interpreter is a finding. 0, or -errno after a line that says why there is no such file.
 */
static int find_program(struct findings *findings, const char *path, char *program, size_t program_bytes)
{
	struct script_line line;
	int err = 0;

	snprintf(program, program_bytes, "%s", path);
	for (int depth = 0; depth <= SCRIPT_DEPTH && !err; depth++) {
		char head[SCRIPT_LINE_BYTES];
		ssize_t length = head_read(program, head, sizeof(head));

		if (length < 0)
			return (int)length;
		bool elf = length >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0;

		if (!elf && !script_line_parse(head, (size_t)length, &line))
			return resolve_other(findings, program, head, length, program, program_bytes);
		if (depth == 0)
			say_forbidden(findings, program);
		if (elf)
			return 0;
		err = step(findings, &line, program, program_bytes);
	}
	if (!err)
		log_line("%s cannot run: its interpreter is a script, whose interpreter is a script, and so "
		         "on, more than %d times",
		    path, SCRIPT_DEPTH);
	return err ? err : -ELOOP;
}

/* Examines the process of that id, or the program of that name. 0, or -errno after a line that says why
 * not. */
static int examine_named(struct findings *findings, const char *name)
{
	char path[PATH_MAX], program[PATH_MAX], *end;
	struct stat status;
	long pid = strtol(name, &end, 10);

	if (*name && !*end && pid > 0 && pid <= INT_MAX)
		return doctor_process_examine(findings, (pid_t)pid);
	if (*name && !*end) {
		log_line("%s is not a process id", name);
		return -ESRCH;
	}
	if (installed_file_in_path(name, path, sizeof(path))) {
		int err = find_program(findings, path, program, sizeof(program));

		return err ? err : doctor_program_examine(findings, program, program, false);
	}
	if (strchr(name, '/'))
		log_line("there is no file %s", name);
	else if (stat(name, &status) == 0 && S_ISDIR(status.st_mode))
		log_line("%s is a folder: name a program in it", name);
	else
		log_line(access(name, F_OK) == 0
		        ? "there is no program %s in PATH; the one here: heaptap doctor ./%s"
		        : "there is no program %s in PATH",
		    name, name);
	return -ENOENT;
}

int doctor_run(struct options *options)
{
	struct findings findings = {.out = stdout};

	if (options->operand_count > 1) {
		log_line("doctor takes one process or program at a time");
		return STATUS_USAGE;
	}
	doctor_machine_examine(&findings, options->operands[0]);
	examine_daemon(&findings, options->socket, options->operands[0]);
	doctor_unit_examine(&findings);
	if (options->operand_count && examine_named(&findings, options->operands[0]))
		return 1;
	return findings.bad ? 1 : 0;
}

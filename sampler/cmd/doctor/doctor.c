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
#include "sampler/cmd/enable/systemctl.h"
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
		    error == -ENOENT || error == -ECONNREFUSED ? systemctl_runs()
		            ? "systemctl start heaptapd, or: heaptap daemon (record needs none)"
		            : "heaptap daemon (record needs none); systemd does not run here"
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

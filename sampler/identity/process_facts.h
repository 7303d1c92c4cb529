/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a process before it is decided about: who executes what, in which unit and container.
 * All of it is read from /proc, and much of it (comm, environment, memory, names of cgroups) is chosen by
 * the process or its user: it is compared and shown, never believed.
 *
 * Reading takes some 10 system calls. The environment is that of the last exec; only the variables below
 * are kept.
 */
#ifndef SAMPLER_IDENTITY_PROCESS_FACTS_H
#define SAMPLER_IDENTITY_PROCESS_FACTS_H

#include "sampler/identity/cgroup_names.h"
#include "sampler/identity/declared_names.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { PROCESS_FACTS_COMM_BYTES = 16 + 1, PROCESS_FACTS_USER_BYTES = 64, PROCESS_FACTS_CALLED_BYTES = 64 };

/* Some 14 KB. Empty strings: unknown, or there is none. */
struct process_facts {
	pid_t pid;
	char exe[PATH_MAX];                  /* as the process sees it, without " (deleted)" */
	char comm[PROCESS_FACTS_COMM_BYTES]; /* without its newline */
	/* The name by which it was executed, if that can be told: Debian's redis-server is a link to
	 * redis-check-rdb, and a busybox has a hundred names. */
	char called[PROCESS_FACTS_CALLED_BYTES];
	uid_t uid;                           /* effective */
	char user[PROCESS_FACTS_USER_BYTES]; /* its name in /etc/passwd, or the number in digits */
	struct cgroup_names cgroup;
	struct declared_names declared; /* what the process says of itself */
	/* For the caller to set: does it carry our library? Rules with attach = yes are about those that do
	 * not. */
	bool has_library;
};

/* 0, or -errno if the process is gone (-ESRCH, -ENOENT) or is none of ours to look at; what else cannot be
 * read is left empty. */
int process_facts_read(struct process_facts *facts, pid_t pid);

/* The same of what tells whose it is alone: uid, without its name, and cgroup. For looks that are many. */
int process_facts_read_owner(struct process_facts *facts, pid_t pid);

/* The last part of exe, else comm: the program that it is, whatever it says. */
const char *process_facts_program(const struct process_facts *facts);

/* Pure. The last part of the first word of a command line (/proc/PID/cmdline), if comm says the same, as it
 * does from the exec until the process or a script's interpreter changes one of them; else "". */
void process_facts_called(
    const char *comm, const char *command_line, char called[PROCESS_FACTS_CALLED_BYTES]);

#endif

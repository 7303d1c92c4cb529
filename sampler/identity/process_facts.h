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

enum { PROCESS_FACTS_COMM_BYTES = 16 + 1, PROCESS_FACTS_USER_BYTES = 64 };

/* Some 14 KB. Empty strings: unknown, or there is none. */
struct process_facts {
	pid_t pid;
	char exe[PATH_MAX];                  /* as the process sees it, without " (deleted)" */
	char comm[PROCESS_FACTS_COMM_BYTES]; /* without its newline */
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

/* The last part of exe, else comm. */
const char *process_facts_program(const struct process_facts *facts);

#endif

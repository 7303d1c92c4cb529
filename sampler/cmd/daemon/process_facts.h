/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about a process that the rules ask for: its user, its program, its unit and its container. All
 * are read from /proc. From them come the names of its service and of its account, and its labels. The
 * process or its user chooses many of them (comm, environment, memory, names of cgroups): so they are
 * compared and shown, but never believed.
 *
 * Reading takes some 10 system calls. The environment is that of the last exec.
 */
#ifndef SAMPLER_CMD_DAEMON_PROCESS_FACTS_H
#define SAMPLER_CMD_DAEMON_PROCESS_FACTS_H

#include "pprof/model/labels.h"
#include "sampler/cmd/daemon/container_names.h"
#include "sampler/cmd/daemon/declared_names.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { PROCESS_FACTS_COMM_BYTES = 16 + 1, PROCESS_FACTS_USER_BYTES = 64, PROCESS_FACTS_CALLED_BYTES = 64 };

/* Some 14 KB. "": unknown, or there is none. */
struct process_facts {
	pid_t pid;
	char exe[PATH_MAX];                  /* as the process sees it, without " (deleted)" */
	char comm[PROCESS_FACTS_COMM_BYTES]; /* without its newline */
	/* The name that it was executed by, if that is known: Debian's redis-server is a link to
	 * redis-check-rdb, and busybox has a hundred names. */
	char called[PROCESS_FACTS_CALLED_BYTES];
	uid_t uid;                           /* effective */
	char user[PROCESS_FACTS_USER_BYTES]; /* its name in /etc/passwd, or the number in digits */
	struct container_names cgroup;
	struct declared_names declared; /* what the process says of itself */
	/* Does it carry our library? The caller sets that. Rules with attach = yes are for processes that
	 * do not. */
	bool has_library;
};

/* Reads the facts. 0, or -errno if the process is gone (-ESRCH, -ENOENT), or if we may not look at it.
 * Other facts that cannot be read are left empty. */
int process_facts_read(struct process_facts *facts, pid_t pid);

/* Reads only the facts that tell the account: the uid, without the user's name, and the cgroup. Much
 * cheaper. */
int process_facts_read_owner(struct process_facts *facts, pid_t pid);

/* The last part of exe, or else comm: the program, whatever the process says of itself. */
const char *process_facts_program(const struct process_facts *facts);

/* The last part of the first word of a command line (/proc/PID/cmdline), if comm is the same; else "".
 * They are the same after an exec, until the process or the interpreter of a script changes one of them.
 * Pure. */
void process_facts_called(
    const char *comm, const char *command_line, char called[PROCESS_FACTS_CALLED_BYTES]);

/* ---- names that are made from the facts: pure functions */

/*
 * The service name of a process without a rule. It is not cleaned: "shop/checkout". In this order:
 * OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES (or DD_SERVICE); OTel's process context; the systemd unit
 * without its suffix; the pod's namespace/container; the container; the executable.
 */
void process_facts_service(const struct process_facts *facts, char *name, size_t name_bytes);

/* The account of a process: who can choose its service name, and so is limited together with all that he
 * runs. "uid-1000" (the user who has logged in, whatever user ids his containers have), "pod-ID",
 * "container-ID", or "unit-sshd" (for all instances of a template). */
void process_facts_account(const struct process_facts *facts, char *account, size_t account_bytes);

/*
 * Makes the labels of a process. They are a comment of its profiles, `labels: service_name=.. host=.. unit=..
 * container_id=.. pod_uid=.. namespace=.. pod=.. container=..`, which pushers and pages read
 * (pprof/model/labels.h). service: the rule's name, or that of process_facts_service(). given: the labels of
 * the rule, which win; NULL: none. 0 or -ENOMEM; call labels_fini() in both cases.
 */
int process_facts_labels(struct labels *labels, const struct process_facts *facts, const char *service,
    const char *host, const struct labels *given);

#endif

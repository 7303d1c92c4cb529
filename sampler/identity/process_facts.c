/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/identity/process_facts.h"

#include "sampler/identity/pod_names.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
	ENVIRONMENT_BYTES = 256 << 10, /* more is not looked at */
	CONTEXT_TRIES = 3,             /* while it is being written */
	PASSWD_BYTES = 16 << 10,
};

/* ---- the process context */

static bool read_memory(pid_t pid, uint64_t address, void *bytes, size_t length)
{
	struct iovec local = {bytes, length}, remote = {(void *)(uintptr_t)address, length};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)length;
}

/* Header, payload, header again: in between it may be written (OTEP 4719, "Reading Protocol"). */
static bool read_context(struct process_facts *facts, uint64_t address)
{
	uint8_t header[DECLARED_CONTEXT_HEADER_BYTES], again[DECLARED_CONTEXT_HEADER_BYTES];
	struct declared_context context;
	uint8_t *payload;
	bool consistent;

	if (!read_memory(facts->pid, address, header, sizeof(header)) ||
	    !declared_names_context_header(header, sizeof(header), &context) || !context.published_ns)
		return false;
	payload = malloc(context.payload_bytes + 1u);
	consistent = payload && read_memory(facts->pid, context.payload, payload, context.payload_bytes) &&
	    read_memory(facts->pid, address, again, sizeof(again)) &&
	    memcmp(header, again, sizeof(header)) == 0;
	if (consistent)
		declared_names_of_context(&facts->declared, payload, context.payload_bytes);
	free(payload);
	return consistent;
}

static void read_contexts(struct process_facts *facts)
{
	FILE *maps = proc_open_text(facts->pid, "maps");
	char line[PATH_MAX + 128];
	uint64_t address;
	bool done = false;

	while (maps && !done && fgets(line, sizeof(line), maps)) {
		if (!declared_names_is_context(line, &address))
			continue;
		for (int tries = 0; tries < CONTEXT_TRIES && !done; tries++)
			done = read_context(facts, address);
	}
	if (maps)
		fclose(maps);
}

/* ---- the rest */

static void read_environment(struct process_facts *facts)
{
	char *text = malloc(ENVIRONMENT_BYTES);
	ssize_t length = text ? proc_read(facts->pid, "environ", text, ENVIRONMENT_BYTES) : -ENOMEM;

	if (length > 0)
		declared_names_of_environment(&facts->declared, text, (size_t)length);
	free(text);
}

/* Of /etc/passwd alone: other sources of names may be servers, for which nobody here may wait. */
static void name_user(struct process_facts *facts)
{
	char buffer[PASSWD_BYTES];
	struct passwd entry, *found;
	FILE *users = fopen("/etc/passwd", "re");

	snprintf(facts->user, sizeof(facts->user), "%u", (unsigned int)facts->uid);
	while (users && fgetpwent_r(users, &entry, buffer, sizeof(buffer), &found) == 0) {
		if (found->pw_uid != facts->uid)
			continue;
		snprintf(facts->user, sizeof(facts->user), "%s", found->pw_name);
		break;
	}
	if (users)
		fclose(users);
}

static void read_user(struct process_facts *facts, const char *status)
{
	const char *line = strstr(status, "\nUid:");
	unsigned int uid;

	if (!line || sscanf(line, "\nUid: %*u %u", &uid) != 1)
		return;
	facts->uid = uid;
	name_user(facts);
}

static void read_cgroup(struct process_facts *facts)
{
	static const size_t bytes = 16 << 10;
	char *text = malloc(bytes);

	if (text && proc_read(facts->pid, "cgroup", text, bytes) > 0)
		cgroup_names_parse(&facts->cgroup, text);
	free(text);
}

/* What the kubelet says goes before what the process says. */
static void read_pod(struct process_facts *facts)
{
	struct declared_names *declared = &facts->declared;
	struct pod_names names;

	if (!*facts->cgroup.pod_uid ||
	    !pod_names_find(&names, POD_NAMES_LOGS, facts->cgroup.pod_uid, facts->cgroup.container_id))
		return;
	memcpy(declared->namespace, names.namespace, sizeof(names.namespace));
	memcpy(declared->pod, names.pod, sizeof(names.pod));
	if (*names.container)
		memcpy(declared->container, names.container, sizeof(names.container));
}

int process_facts_read(struct process_facts *facts, pid_t pid)
{
	char status[4096];
	ssize_t length;

	_Static_assert((int)POD_NAMES_BYTES == (int)DECLARED_NAME_BYTES, "names are copied");
	memset(facts, 0, sizeof(*facts));
	facts->pid = pid;
	facts->uid = (uid_t)-1;
	length = proc_read(pid, "status", status, sizeof(status));
	if (length < 0)
		return (int)length;
	read_user(facts, status);
	if (proc_read(pid, "comm", facts->comm, sizeof(facts->comm)) > 0)
		facts->comm[strcspn(facts->comm, "\n")] = '\0';
	if (proc_read_exe(pid, facts->exe, sizeof(facts->exe)) > 0)
		proc_strip_deleted(facts->exe);
	read_cgroup(facts);
	read_environment(facts);
	read_contexts(facts);
	read_pod(facts);
	return 0;
}

const char *process_facts_program(const struct process_facts *facts)
{
	const char *slash = strrchr(facts->exe, '/');

	if (slash && slash[1])
		return slash + 1;
	return *facts->comm ? facts->comm : "unknown";
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/process_facts.h"

#include "sampler/cmd/daemon/container_names.h"
#include "sampler/linux/memory_reader.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
	ENVIRONMENT_BYTES = 256 << 10, /* no more is read */
	PASSWD_BYTES = 16 << 10,
	COMM_LENGTH = 15,
};

static void read_environment(struct process_facts *facts)
{
	char *text = malloc(ENVIRONMENT_BYTES);
	ssize_t length = text ? proc_read(facts->pid, "environ", text, ENVIRONMENT_BYTES) : -ENOMEM;

	if (length > 0)
		declared_names_of_environment(&facts->declared, text, (size_t)length);
	free(text);
}

/* Finds the user's name, only in /etc/passwd: other sources of names may be servers, and the daemon must
 * not wait for them. */
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
}

static void read_cgroup(struct process_facts *facts)
{
	static const size_t bytes = 16 << 10;
	char *text = malloc(bytes);

	if (text && proc_read(facts->pid, "cgroup", text, bytes) > 0)
		container_names_parse(&facts->cgroup, text);
	free(text);
}

/* The kubelet is believed more than the process. */
static void read_pod(struct process_facts *facts)
{
	struct declared_names *declared = &facts->declared;
	struct container_names_pod names;

	if (!*facts->cgroup.pod_uid ||
	    !container_names_find_pod(
	        &names, CONTAINER_NAMES_LOGS, facts->cgroup.pod_uid, facts->cgroup.container_id))
		return;
	memcpy(declared->namespace, names.namespace, sizeof(names.namespace));
	memcpy(declared->pod, names.pod, sizeof(names.pod));
	if (*names.container)
		memcpy(declared->container, names.container, sizeof(names.container));
}

void process_facts_called(const char *comm, const char *command_line, char called[PROCESS_FACTS_CALLED_BYTES])
{
	const size_t word = strcspn(command_line, " "), comm_length = strlen(comm);
	const char *name = command_line + word;

	while (name > command_line && name[-1] != '/')
		name--;
	const size_t length = (size_t)(command_line + word - name);
	called[0] = '\0';
	/* the kernel cuts comm to 15 bytes */
	if (!length || length >= PROCESS_FACTS_CALLED_BYTES ||
	    comm_length != (length < COMM_LENGTH ? length : COMM_LENGTH) ||
	    memcmp(name, comm, comm_length) != 0)
		return;
	memcpy(called, name, length);
	called[length] = '\0';
}

static void read_called(struct process_facts *facts)
{
	char line[PATH_MAX];

	if (proc_read(facts->pid, "cmdline", line, sizeof(line)) > 0)
		process_facts_called(facts->comm, line, facts->called);
}

int process_facts_read_owner(struct process_facts *facts, pid_t pid)
{
	char status[4096];
	ssize_t length;

	memset(facts, 0, sizeof(*facts));
	facts->pid = pid;
	facts->uid = (uid_t)-1;
	length = proc_read(pid, "status", status, sizeof(status));
	if (length < 0)
		return (int)length;
	read_user(facts, status);
	read_cgroup(facts);
	return 0;
}

/* ---- the process context of OpenTelemetry (declared_names.h) */

enum { TRIES = 3 }; /* the process may be writing its context */

struct context_bytes {
	uint64_t address; /* of the header */
	size_t payload_bytes;
	uint8_t payload[DECLARED_CONTEXT_BYTES_MAX + 1];
};

static bool copy_memory(pid_t pid, uint64_t address, void *bytes, size_t length)
{
	struct iovec local = {bytes, length}, remote = {(void *)(uintptr_t)address, length};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)length;
}

/* Reads the header, the payload, and the header again: the process may write them in between (OTEP 4719,
 * "Reading Protocol"). */
static void gather_context(pid_t pid, void *result)
{
	struct context_bytes *bytes = result;
	uint8_t header[DECLARED_CONTEXT_HEADER_BYTES], again[DECLARED_CONTEXT_HEADER_BYTES];
	struct declared_context context;

	for (int tries = 0; tries < TRIES; tries++) {
		if (!copy_memory(pid, bytes->address, header, sizeof(header)) ||
		    !declared_names_context_header(header, sizeof(header), &context))
			return;
		if (!context.published_ns || context.payload_bytes > sizeof(bytes->payload) ||
		    !copy_memory(pid, context.payload, bytes->payload, context.payload_bytes) ||
		    !copy_memory(pid, bytes->address, again, sizeof(again)) ||
		    memcmp(header, again, sizeof(header)) != 0)
			continue;
		bytes->payload_bytes = context.payload_bytes;
		return;
	}
}

static bool find_context(pid_t pid, uint64_t *address)
{
	FILE *maps = proc_open_text(pid, "maps");
	char line[PATH_MAX + 128];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = declared_names_is_context(line, address);
	if (maps)
		fclose(maps);
	return found;
}

/* Adds what the process has published in its memory, if it can be read in time (memory_reader.h). */
static void read_context(struct declared_names *names, pid_t pid)
{
	uint64_t address;
	struct context_bytes *bytes = find_context(pid, &address) ? calloc(1, sizeof(*bytes)) : NULL;

	if (!bytes)
		return;
	bytes->address = address;
	if (memory_reader_run(gather_context, pid, bytes, sizeof(*bytes)) == 0 && bytes->payload_bytes)
		declared_names_of_context(names, bytes->payload, bytes->payload_bytes);
	free(bytes);
}

/* ---- all of it */

int process_facts_read(struct process_facts *facts, pid_t pid)
{
	int error = process_facts_read_owner(facts, pid);

	_Static_assert((int)CONTAINER_NAMES_POD_NAME_BYTES == (int)DECLARED_NAME_BYTES, "names are copied");
	if (error)
		return error;
	if (facts->uid != (uid_t)-1)
		name_user(facts);
	if (proc_read(pid, "comm", facts->comm, sizeof(facts->comm)) > 0)
		facts->comm[strcspn(facts->comm, "\n")] = '\0';
	if (proc_read_exe(pid, facts->exe, sizeof(facts->exe)) > 0)
		proc_strip_deleted(facts->exe);
	read_called(facts);
	read_environment(facts);
	read_context(&facts->declared, pid);
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

/* ---- names that are made from the facts */

/* Does the unit name a service? A scope of a login, of a terminal or of a user's manager does not. */
static bool unit_names(const char *unit, char *name, size_t name_bytes)
{
	static const char suffix[] = ".service";
	size_t length = strlen(unit);

	if (length <= strlen(suffix) || strcmp(unit + length - strlen(suffix), suffix) != 0 ||
	    strncmp(unit, "user@", 5) == 0)
		return false;
	snprintf(name, name_bytes, "%.*s", (int)(length - strlen(suffix)), unit);
	return true;
}

void process_facts_service(const struct process_facts *facts, char *name, size_t name_bytes)
{
	const struct declared_names *said = &facts->declared;

	if (*said->service || *said->context_service)
		snprintf(name, name_bytes, "%s", *said->service ? said->service : said->context_service);
	else if (unit_names(facts->cgroup.unit, name, name_bytes))
		return;
	else if (*facts->cgroup.container_id && *said->namespace && *said->container)
		snprintf(name, name_bytes, "%s/%s", said->namespace, said->container);
	else if (*facts->cgroup.container_id && *said->container)
		snprintf(name, name_bytes, "%s", said->container);
	else
		snprintf(
		    name, name_bytes, "%s", *facts->called ? facts->called : process_facts_program(facts));
}

/* Is the cgroup below a login session or manager, and of which user? There the user makes cgroups himself. */
static bool login_of(const char *path, unsigned int *uid)
{
	int end = 0;

	while (strncmp(path, "/..", 3) == 0) /* so the path begins when we are in a container */
		path += 3;
	return sscanf(path, "/user.slice/user-%u.slice%n", uid, &end) == 1 && end;
}

void process_facts_account(const struct process_facts *facts, char *account, size_t account_bytes)
{
	const struct container_names *cgroup = &facts->cgroup;
	unsigned int uid;

	if (login_of(cgroup->path, &uid))
		snprintf(account, account_bytes, "uid-%u", uid);
	else if (*cgroup->pod_uid)
		snprintf(account, account_bytes, "pod-%s", cgroup->pod_uid);
	else if (*cgroup->container_id)
		snprintf(account, account_bytes, "container-%s", cgroup->container_id);
	else if (*cgroup->unit &&
	    strncmp(cgroup->unit, "run-", 4) != 0) /* units of systemd-run have numbers */
		snprintf(account, account_bytes, "unit-%.*s", (int)strcspn(cgroup->unit, "@"), cgroup->unit);
	else
		snprintf(account, account_bytes, "uid-%u", (unsigned int)facts->uid);
}

int process_facts_labels(struct labels *labels, const struct process_facts *facts, const char *service,
    const char *host, const struct labels *given)
{
	const struct declared_names *said = &facts->declared;

	const struct {
		const char *name, *value;
	} found[] = {
	    {"service_name", service},
	    {"host", host},
	    {"unit", facts->cgroup.unit},
	    {"container_id", facts->cgroup.container_id},
	    {"pod_uid", facts->cgroup.pod_uid},
	    {"namespace", said->namespace},
	    {"pod", said->pod},
	    {"container", said->container},
	    {"deployment_environment_name", said->environment},
	    {"service_version", said->version},
	};
	int err = 0;

	*labels = (struct labels){0};
	for (size_t i = 0; given && i < given->count && !err; i++)
		err = labels_add(labels, given->rows[i].name, given->rows[i].value);
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]) && !err; i++)
		err = labels_add(labels, found[i].name, found[i].value);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/process_labels.h"

#include "sampler/cmd/daemon/process_facts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

void process_labels_service(const struct process_facts *facts, char *name, size_t name_bytes)
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

void process_labels_owner(const struct process_facts *facts, char *owner, size_t owner_bytes)
{
	const struct container_names *cgroup = &facts->cgroup;
	unsigned int uid;

	if (login_of(cgroup->path, &uid))
		snprintf(owner, owner_bytes, "uid-%u", uid);
	else if (*cgroup->pod_uid)
		snprintf(owner, owner_bytes, "pod-%s", cgroup->pod_uid);
	else if (*cgroup->container_id)
		snprintf(owner, owner_bytes, "container-%s", cgroup->container_id);
	else if (*cgroup->unit &&
	    strncmp(cgroup->unit, "run-", 4) != 0) /* units of systemd-run have numbers */
		snprintf(owner, owner_bytes, "unit-%.*s", (int)strcspn(cgroup->unit, "@"), cgroup->unit);
	else
		snprintf(owner, owner_bytes, "uid-%u", (unsigned int)facts->uid);
}

int process_labels_make(struct labels *labels, const struct process_facts *facts, const char *service,
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/identity/process_labels.h"

#include "sampler/identity/process_facts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The unit names a service, and is not the scope of a login, of a terminal or of a user's manager. */
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
		snprintf(name, name_bytes, "%s", process_facts_program(facts));
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

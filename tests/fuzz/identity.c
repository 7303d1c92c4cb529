/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process or its user chooses of itself: the environment, a process context, names of cgroups, a
 * line of its maps.
 *
 * Input: a byte that says which, the bytes.
 */
#include "sampler/cmd/daemon/container_names.h"
#include "sampler/cmd/daemon/declared_names.h"

#include "pprof/text/utf8.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *name)
{
	size_t length = strnlen(name, DECLARED_NAME_BYTES);

	if (length == DECLARED_NAME_BYTES || utf8_valid_prefix(name, length) != length)
		abort();
	for (; *name; name++)
		if ((unsigned char)*name < ' ')
			abort();
}

static void check_names(const struct declared_names *names)
{
	const char *const all[] = {names->service, names->context_service, names->environment, names->version,
	    names->namespace, names->pod, names->container};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check(all[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct container_names cgroup;
	struct declared_names names = {0};
	struct declared_context context;
	struct container_names_pod pod;
	uint8_t *copy;
	uint64_t address;

	if (!size)
		return 0;
	copy = malloc(size); /* of just that size: with a final 0 it is text */
	memcpy(copy, data + 1, size - 1);
	copy[size - 1] = '\0';
	switch (data[0] % 5) {
	case 0:
		declared_names_of_environment(&names, copy, size - 1);
		break;
	case 1:
		declared_names_of_context(&names, copy, size - 1);
		break;
	case 2:
		declared_names_context_header(copy, size - 1, &context);
		break;
	case 3:
		container_names_parse(&cgroup, (char *)copy);
		if (strlen(cgroup.container_id) > 64 || strlen(cgroup.pod_uid) > 36)
			abort();
		break;
	default:
		declared_names_is_context((char *)copy, &address);
		container_names_parse_pod(&pod, (char *)copy, "1234");
	}
	check_names(&names);
	free(copy);
	return 0;
}

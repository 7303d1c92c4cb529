/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/program_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool program_path_find(const char *name, char *path, size_t path_bytes)
{
	const char *at = getenv("PATH");
	struct stat status;

	snprintf(path, path_bytes, "%s", name);
	if (strchr(name, '/'))
		return access(path, F_OK) == 0;
	for (at = at ? at : "/bin:/usr/bin"; *name && *at; at += strcspn(at, ":"), at += *at == ':') {
		size_t length = strcspn(at, ":");

		snprintf(path, path_bytes, "%.*s%s%s", (int)length, at, length ? "/" : "", name);
		if (access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode))
			return true;
	}
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/installed_file.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool candidate_is_there(
    char *path, size_t path_bytes, const char *folder, const char *relative, const char *name)
{
	char joined[PATH_MAX], resolved[PATH_MAX];

	if (snprintf(joined, sizeof(joined), "%s%s%s", folder, relative, name) >= (int)sizeof(joined))
		return false;
	return realpath(joined, resolved) && access(resolved, R_OK) == 0 &&
	    snprintf(path, path_bytes, "%s", resolved) < (int)path_bytes;
}

int installed_file_find(const char *name, char *path, size_t path_bytes)
{
	char folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	if (length > 0) {
		folder[length] = '\0';
		*strrchr(folder, '/') = '\0';
		if (candidate_is_there(path, path_bytes, folder, "/", name) ||
		    candidate_is_there(path, path_bytes, folder, "/../lib/heaptap/", name))
			return 0;
	}
	return candidate_is_there(path, path_bytes, HEAPTAP_LIBDIR, "/", name) ? 0 : -ENOENT;
}

bool installed_file_in_path(const char *name, char *path, size_t path_bytes)
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/control_path.h"

#include "pprof/codec/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int copy_path(const char *from, char path[CONTROL_PATH_BYTES])
{
	return snprintf(path, CONTROL_PATH_BYTES, "%s", from) < CONTROL_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

/* The path that the user has named, or NULL. */
static const char *path_chosen(const char *given)
{
	const char *path = given ? given : getenv("HEAPTAP_SOCKET");

	return path && *path ? path : NULL;
}

static int path_default(uid_t uid, char path[CONTROL_PATH_BYTES])
{
	if (uid == 0)
		return copy_path(CONTROL_PATH_ROOT, path);
	int error = folder_of_user("XDG_RUNTIME_DIR", NULL, "/heaptap/control", path, CONTROL_PATH_BYTES);
	if (error != -ENOENT)
		return error;
	snprintf(path, CONTROL_PATH_BYTES, "/tmp/heaptap-%u/control", (unsigned int)uid);
	return 0;
}

int control_path_own(const char *given, uid_t uid, char path[CONTROL_PATH_BYTES])
{
	const char *chosen = path_chosen(given);

	return chosen ? copy_path(chosen, path) : path_default(uid, path);
}

size_t control_path_candidates(
    const char *given, uid_t uid, char paths[CONTROL_PATHS][CONTROL_PATH_BYTES], bool *chosen)
{
	const char *named = path_chosen(given);
	size_t count = 0;

	*chosen = named && (given || uid != 0); /* su and sudo -E leave root the variable of another user */
	if (named)
		return copy_path(named, paths[0]) == 0;
	count += path_default(uid, paths[count]) == 0;
	if (uid != 0)
		count += copy_path(CONTROL_PATH_ROOT, paths[count]) == 0;
	return count;
}

int control_path_off(const char *socket_path, char path[CONTROL_PATH_BYTES])
{
	const char *slash = strrchr(socket_path, '/');
	int folder = slash ? (int)(slash - socket_path) + 1 : 0;
	int length = snprintf(path, CONTROL_PATH_BYTES, "%.*s" CONTROL_OFF_NAME, folder, socket_path);

	return length < CONTROL_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

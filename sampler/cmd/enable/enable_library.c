/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/enable/enable_library.h"

#include "sampler/inject/preload_library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "/opt/lib/heaptap/libheaptap.so", as `make install` puts it: not that of a build folder. */
static bool is_installed(const char *path)
{
	static const char ending[] = "/heaptap/" PRELOAD_LIBRARY_NAME;
	const size_t length = strlen(path);

	return length >= sizeof(ending) - 1 && strcmp(path + length - (sizeof(ending) - 1), ending) == 0;
}

void enable_library_find(struct enable_library *library, const struct root_folder *root, const char *given)
{
	char own[PATH_MAX];

	memset(library, 0, sizeof(*library));
	snprintf(library->usual, sizeof(library->usual), "%s",
	    given ? given : HEAPTAP_LIBDIR "/" PRELOAD_LIBRARY_NAME);
	/* The library beside this program goes first: it is of the same version, and of the same PREFIX. */
	const bool found = !given && preload_library_find(own, sizeof(own)) == 0;
	snprintf(library->wanted, sizeof(library->wanted), "%s",
	    found && is_installed(own) ? own : library->usual);
	if (found && root_folder_has(root, own)) {
		strcpy(library->wanted, own);
		library->path = library->wanted;
	} else if (root_folder_has(root, library->usual)) {
		library->path = library->usual;
	}
}

/* ---- who may replace it */

enum { LINKS_MOST = 40 }; /* as the kernel */

/* A path on its way to a file: `done` has no link any more, and what is left begins at a name. */
struct way {
	char done[PATH_MAX], rest[PATH_MAX];
	int links;
};

/* A name in a folder that root alone can change. A link's own mode says nothing. In a sticky folder nobody
 * replaces root's files. */
static bool is_roots(const struct stat *status)
{
	const bool sticky = S_ISDIR(status->st_mode) && (status->st_mode & S_ISVTX);

	return status->st_uid == 0 && (S_ISLNK(status->st_mode) || !(status->st_mode & 022) || sticky);
}

/* Cuts the last name off the way. */
static void go_up(struct way *way)
{
	char *slash = strrchr(way->done, '/');

	if (slash)
		*slash = '\0';
}

/* What the link at `done` says goes in front of the rest. */
static int follow(struct way *way)
{
	char target[PATH_MAX], rest[PATH_MAX];
	const ssize_t length = readlink(way->done, target, sizeof(target));

	if (length < 0)
		return -errno;
	if (++way->links > LINKS_MOST)
		return -ELOOP;
	if (snprintf(rest, sizeof(rest), "%.*s/%s", (int)length, target, way->rest) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(way->rest, rest);
	if (*rest == '/')
		*way->done = '\0';
	else
		go_up(way);
	return 0;
}

/* Goes to the next name. Returns 0 or -errno. */
static int step(struct way *way, struct stat *status)
{
	const size_t skip = strspn(way->rest, "/"), length = strcspn(way->rest + skip, "/");
	const size_t done = strlen(way->done);
	const char *name = way->rest + skip;

	if (length == 2 && memcmp(name, "..", 2) == 0)
		go_up(way);
	else if (length && !(length == 1 && *name == '.') &&
	    snprintf(way->done + done, sizeof(way->done) - done, "/%.*s", (int)length, name) >=
	        (int)(sizeof(way->done) - done))
		return -ENAMETOOLONG;
	memmove(way->rest, name + length, strlen(name + length) + 1);
	return lstat(*way->done ? way->done : "/", status) == 0 ? 0 : -errno;
}

int enable_library_check(const char *path, char *reason, size_t reason_bytes)
{
	struct way way = {.done = ""};
	struct stat status;
	int error = lstat("/", &status) == 0 ? 0 : -errno;

	snprintf(way.rest, sizeof(way.rest), "%s", path);
	while (!error && is_roots(&status) && (*way.rest || S_ISLNK(status.st_mode))) {
		if (S_ISLNK(status.st_mode))
			error = follow(&way);
		if (!error)
			error = step(&way, &status);
	}
	if (error) {
		snprintf(reason, reason_bytes, "%s: %s", path, strerror(-error));
		return -EPERM;
	}
	if (is_roots(&status))
		return 0;
	snprintf(reason, reason_bytes,
	    "%s belongs to another user than root, or others may write there: whoever replaces %s runs "
	    "code in every program that loads it",
	    *way.done ? way.done : "/", path);
	return -EPERM;
}

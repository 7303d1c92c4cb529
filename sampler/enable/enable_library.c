/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/enable_library.h"

#include "sampler/loader/preload_library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *add(struct enable_library *library, const char *path)
{
	for (size_t i = 0; i < library->count; i++)
		if (strcmp(library->paths[i], path) == 0)
			return library->paths[i];
	snprintf(library->paths[library->count], PATH_MAX, "%s", path);
	return library->paths[library->count++];
}

/* "/opt/lib/heaptap/libheaptap.so", as `make install` puts it: not that of a build folder. */
static bool is_installed(const char *path)
{
	static const char ending[] = "/heaptap/" PRELOAD_LIBRARY_NAME;
	const size_t length = strlen(path);

	return length >= sizeof(ending) - 1 && strcmp(path + length - (sizeof(ending) - 1), ending) == 0;
}

void enable_library_find(struct enable_library *library, const struct root_folder *root, const char *given)
{
	char found[PATH_MAX];

	memset(library, 0, sizeof(*library));
	library->wanted = given ? add(library, given) : NULL;
	/* The one beside this program goes first: it is of the same version, and of the same PREFIX. */
	if (preload_library_find(found, sizeof(found)) == 0) {
		const char *own = add(library, found);

		library->wanted = library->wanted || !is_installed(own) ? library->wanted : own;
	}
	const char *usual = add(library, HEAPTAP_LIBDIR "/" PRELOAD_LIBRARY_NAME);
	library->wanted = library->wanted ? library->wanted : usual;
	for (size_t i = 0; i < (given ? 1 : library->count) && !library->path; i++)
		if (root_folder_has(root, library->paths[i]))
			library->path = library->paths[i];
}

int enable_library_check(const char *path, char *reason, size_t reason_bytes)
{
	char part[PATH_MAX];
	struct stat status;

	snprintf(part, sizeof(part), "%s", path);
	for (;;) {
		if (stat(*part ? part : "/", &status) != 0) {
			snprintf(reason, reason_bytes, "%s: %s", part, strerror(errno));
			return -EPERM;
		}
		/* In a sticky folder nobody replaces root's files. */
		bool sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX);
		if (status.st_uid != 0 || ((status.st_mode & 022) && !sticky)) {
			snprintf(reason, reason_bytes,
			    "%s belongs to another user than root, or others may write there: who replaces "
			    "%s runs code "
			    "in every program that loads it",
			    *part ? part : "/", path);
			return -EPERM;
		}
		if (!*part)
			return 0;
		*strrchr(part, '/') = '\0';
	}
}

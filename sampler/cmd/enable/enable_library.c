/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/enable/enable_library.h"

#include "sampler/inject/preload_library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
			    "%s belongs to another user than root, or others may write there: whoever "
			    "replaces %s runs code in every program that loads it",
			    *part ? part : "/", path);
			return -EPERM;
		}
		if (!*part)
			return 0;
		*strrchr(part, '/') = '\0';
	}
}

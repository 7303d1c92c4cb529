/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/enable_library.h"

#include "sampler/loader/preload_library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void enable_library_find(struct enable_library *library, const struct root_folder *root)
{
	char found[PATH_MAX];
	memset(library, 0, sizeof(*library));
	strcpy(library->paths[library->count++], HEAPTAP_LIBDIR "/" PRELOAD_LIBRARY_NAME);
	if (preload_library_find(found, sizeof(found)) == 0 && strcmp(found, library->paths[0]) != 0)
		strcpy(library->paths[library->count++], found);
	/* The one beside this program goes first: it is of the same version. */
	for (size_t i = library->count; i-- > 0 && !library->path;)
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

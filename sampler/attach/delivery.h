/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of libheaptap-attach.so that the processes of a session load: a file in memory, which nobody can
 * change any more. So all of them, whosever they are, may share it, and with it the uprobe. */
#ifndef SAMPLER_ATTACH_DELIVERY_H
#define SAMPLER_ATTACH_DELIVERY_H

#include <stdbool.h>

#define DELIVERY_NAME "libheaptap-attach.so"

struct delivery {
	int fd;          /* closed by the caller; -1: none */
	bool executable; /* may be mapped as code; if not, each target gets a file (library_folder.h) */
};

/* Reads the library at `path`. Returns 0; -ENOEXEC: it is of another version; or -errno. */
int delivery_open(struct delivery *delivery, const char *path);

#endif

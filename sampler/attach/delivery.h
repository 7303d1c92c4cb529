/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of libheaptap-attach.so that all processes of a session load: a sealed file in memory. Nobody can
 * change the copy, so processes of all users share it, and with it the uprobe. */
#ifndef SAMPLER_ATTACH_DELIVERY_H
#define SAMPLER_ATTACH_DELIVERY_H

#include <stdbool.h>

#define DELIVERY_NAME "libheaptap-attach.so"

struct delivery {
	int fd;          /* the caller closes it; -1: none */
	bool executable; /* may be mapped as code; if not, each target gets a file (library_folder.h) */
};

/* Copies the library at `path`. Returns 0, -ENOEXEC if it is of another version, or -errno. */
int delivery_open(struct delivery *delivery, const char *path);

#endif

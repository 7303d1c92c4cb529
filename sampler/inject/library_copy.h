/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of libheaptap-attach.so that all processes of a session load: a sealed file in memory. Nobody can
 * change the copy, so processes of all users share it, and with it the uprobe. */
#ifndef SAMPLER_INJECT_LIBRARY_COPY_H
#define SAMPLER_INJECT_LIBRARY_COPY_H

#include "sampler/inject/preload_library.h"

#include <stdbool.h>

struct library_copy {
	int fd;          /* the caller closes it; -1: none */
	bool executable; /* may be mapped as code; if not, each target gets a file (library_folder.h) */
};

/* Copies the library at `path`. Returns 0, -ENOEXEC if it is of another version, or -errno. */
int library_copy_open(struct library_copy *library_copy, const char *path);

#endif

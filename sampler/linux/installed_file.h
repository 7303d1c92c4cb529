/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files that were installed with this program: the library, other programs. */
#ifndef SAMPLER_LINUX_INSTALLED_FILE_H
#define SAMPLER_LINUX_INSTALLED_FILE_H

#include <stddef.h>

/*
 * Looks beside the running binary, then in ../lib/heaptap (where `make install` puts it), then in the folder
 * that was compiled in. Skips a path that does not fit. Returns 0 or -ENOENT. `path` is absolute.
 */
int installed_file_find(const char *name, char *path, size_t path_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files are that were installed with this program: the library, other programs. */
#ifndef SAMPLER_LINUX_INSTALLED_FILE_H
#define SAMPLER_LINUX_INSTALLED_FILE_H

#include <stddef.h>

/*
 * Looks beside the running binary, then in ../lib/heaptap as `make install` places it, then in the folder
 * that was compiled in; passes over one whose path does not fit. Returns 0 or -ENOENT. `path` is absolute.
 */
int installed_file_find(const char *name, char *path, size_t path_bytes);

#endif

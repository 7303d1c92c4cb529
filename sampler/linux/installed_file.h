/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files that are installed: the library and the programs that came with this one, and programs in
 * PATH. */
#ifndef SAMPLER_LINUX_INSTALLED_FILE_H
#define SAMPLER_LINUX_INSTALLED_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Looks beside the running binary, then in ../lib/heaptap (where `make install` puts it), then in the folder
 * that was compiled in. Skips a path that does not fit. Returns 0 or -ENOENT. `path` is absolute.
 */
int installed_file_find(const char *name, char *path, size_t path_bytes);

/*
 * Finds the program that execvp(3) would start: looks up `name` in PATH, where only regular files that we may
 * execute count. A name with a slash is a path itself, which need only exist. False if there is none.
 */
bool installed_file_in_path(const char *name, char *path, size_t path_bytes);

#endif

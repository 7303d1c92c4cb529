/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program is that execvp(3) would start. */
#ifndef SAMPLER_LINUX_PROGRAM_PATH_H
#define SAMPLER_LINUX_PROGRAM_PATH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Looks `name` up in PATH; a name with a slash is a path itself, which need only exist. False: there is none.
 * In PATH only regular files that we may execute count.
 */
bool program_path_find(const char *name, char *path, size_t path_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the program that execvp(3) would start. */
#ifndef SAMPLER_LINUX_PROGRAM_PATH_H
#define SAMPLER_LINUX_PROGRAM_PATH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Looks up `name` in PATH, where only regular files that we may execute count. A name with a slash is a path
 * itself, which need only exist. False if there is none.
 */
bool program_path_find(const char *name, char *path, size_t path_bytes);

#endif

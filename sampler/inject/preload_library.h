/* SPDX-License-Identifier: Apache-2.0 */
/* Where libheaptap.so is, and how COMMAND's environment names it. */
#ifndef SAMPLER_INJECT_PRELOAD_LIBRARY_H
#define SAMPLER_INJECT_PRELOAD_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define PRELOAD_LIBRARY_NAME  "libheaptap.so"
#define ATTACH_LIBRARY_NAME   "libheaptap-attach.so"
/* The name of the mapping in an attached process: a copy in memory, or a removed file. */
#define ATTACH_LIBRARY_MAPPED ATTACH_LIBRARY_NAME " (deleted)"

/* Where installed_file_find() finds it. Returns 0 or -ENOENT. `path` is absolute. */
int preload_library_find(char *path, size_t path_bytes);

/* The same for the library that running processes load. */
int attach_library_find(char *path, size_t path_bytes);

/* Can LD_PRELOAD carry this path? Spaces and colons separate its entries, '$' begins a token (ld.so(8)). */
bool preload_library_is_preloadable(const char *path);

/*
 * The environment for COMMAND: a copy of `environment` with `library` in front of LD_PRELOAD's value, with
 * HEAPTAP=`value`, and with an ASAN_OPTIONS that lets a library come before AddressSanitizer's runtime. All
 * else and the order stay. The caller frees it with preload_library_environment_free; it borrows the other
 * strings. NULL if out of memory.
 */
char **preload_library_environment(char *const environment[], const char *library, const char *value);
void preload_library_environment_free(char **environment);

#endif

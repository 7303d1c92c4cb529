/* SPDX-License-Identifier: Apache-2.0 */
/* Where libheaptap.so is, and how COMMAND's environment names it. */
#ifndef SAMPLER_LIBRARY_H
#define SAMPLER_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define LIBRARY_NAME "libheaptap.so"

/*
 * Looks beside the running binary, then in ../lib/heaptap as `make install` places it, then in the folder
 * that was compiled in. Returns 0, -ENOENT, or -ENAMETOOLONG. `path` is absolute.
 */
int library_find(char *path, size_t path_bytes);

/* Can LD_PRELOAD carry this path? Spaces and colons separate its entries, '$' begins a token (ld.so(8)). */
bool library_is_preloadable(const char *path);

/*
 * The environment for COMMAND: `environment` with `library` in front of what LD_PRELOAD holds and with
 * HEAPTAP set to `value`, all else and the order kept. The caller frees it with library_environment_free; it
 * borrows the other strings. NULL: no memory.
 */
char **library_environment(char *const environment[], const char *library, const char *value);
void library_environment_free(char **environment);

#endif

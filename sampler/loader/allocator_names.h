/* SPDX-License-Identifier: Apache-2.0 */
/* How allocators other than the libc's are recognised: jemalloc, mimalloc, tcmalloc. Pure. */
#ifndef SAMPLER_LOADER_ALLOCATOR_NAMES_H
#define SAMPLER_LOADER_ALLOCATOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* A function that such an allocator defines and nothing else does. A file with one that it does not export
 * has the allocator inside, where no preloaded library can see what it does: Rust's tikv-jemallocator is such
 * a one (_rjem_malloc). */
bool allocator_names_function(const char *name);

/* All of these; NULL beyond the last. */
const char *allocator_names_at(size_t index);

/* The file name of such an allocator's shared library. */
bool allocator_names_library(const char *name);

#endif

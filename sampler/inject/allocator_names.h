/* SPDX-License-Identifier: Apache-2.0 */
/* How allocators other than the libc's are recognised: jemalloc, mimalloc, tcmalloc. Pure. */
#ifndef SAMPLER_INJECT_ALLOCATOR_NAMES_H
#define SAMPLER_INJECT_ALLOCATOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Is this a function that only such an allocator defines? A file that has the function and does not export it
 * has the allocator inside, where no preloaded library can see its calls. Rust's tikv-jemallocator is an
 * example (_rjem_malloc). */
bool allocator_names_function(const char *name);

/* Function number `index`, or NULL beyond the last. */
const char *allocator_names_at(size_t index);

/* Is this the file name of such an allocator's shared library? */
bool allocator_names_library(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's mmap and munmap, for our own mappings: in this library the functions of these names are
 * hooks. */
#ifndef PRELOAD_MEMORY_H
#define PRELOAD_MEMORY_H

#include <stddef.h>

/* Readable and writable; flags as of mmap; fd -1 for none. NULL: refused. */
void *memory_map(size_t bytes, int flags, int fd);
/* Maps private zero pages over what is mapped there. */
void memory_cover(void *start, size_t bytes);

void memory_unmap(void *start, size_t bytes);

#endif

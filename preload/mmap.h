/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of mmap, mremap, munmap and mprotect (mmap.c). */
#ifndef PRELOAD_MMAP_H
#define PRELOAD_MMAP_H

/* Another region may record mappings, or not. */
void mmap_open(void);

#endif

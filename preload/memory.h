/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's mmap, munmap and mprotect, for our own purposes: in this library the functions of these names
 * are hooks. */
#ifndef PRELOAD_MEMORY_H
#define PRELOAD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the kernel makes the pages of each mapping at once, as it does after mlockall(MCL_FUTURE). */
bool memory_is_made_at_once(void);

/* From now on mappings take no page before it is used, also after the program's own mlockall(MCL_FUTURE),
 * which would have the kernel make all of them at once. Takes two or three calls more for each, of which a
 * filter may not know munlock and mremap; only a program that runs already can have called mlockall. Returns
 * what was so before. */
bool memory_map_lazily(bool lazily);

/* Readable and writable; flags as of mmap; fd -1 for none. NULL: refused. */
void *memory_map(size_t bytes, int flags, int fd);

/* Maps the shared file that is mapped at `start` once more at another address: `bytes` of the file from there
 * on, also beyond the end of the first mapping. If `over` is not NULL, the second mapping replaces what is
 * mapped there. NULL if refused: all is as it was. */
void *memory_map_again(void *start, size_t bytes, void *over);

/* What the file that is mapped in the `before` bytes in front of `start` has behind them, in place of what is
 * mapped at `start`. False: refused, all is as it was, but that those bytes are not locked any more. */
bool memory_continue(void *start, size_t before, size_t bytes);

/* The same file, shared, in place of what is mapped at `start`. */
bool memory_replace(void *start, size_t bytes, int fd);

/* Zeroes in place of what is mapped there, shared with nobody but children of this process (and shared at all
 * because then no limit of data, RLIMIT_DATA, is in the way). False: refused, all is as it was. */
bool memory_cover(void *start, size_t bytes);

void memory_unmap(void *start, size_t bytes);

/* Pages that read as zeroes and may not be written in place of what is mapped there: they take no memory, and
 * no limit of data counts them. False: refused, all is as it was. */
bool memory_retire(void *start, size_t bytes);

/* PROT_*. False: refused. */
bool memory_protect(void *start, size_t bytes, int protection);

#endif

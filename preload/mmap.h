/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmap, mremap and munmap as the program calls them. Without `record --mmap` each is one test and the
 * forwarded call.
 *
 * With it, anonymous mappings are sampled by their length, rounded up to whole pages, on the same count of
 * bytes as the heap's blocks, and every unmapping, also by a mapping placed over another one, is noted. A
 * mremap that grows or moves a mapping is, like realloc, the end of one block and the birth of another; one
 * that shrinks it in place unmaps its tail.
 *
 * Not recorded: files; what the allocator maps for itself, which is the heap that malloc's rows tell of; what
 * the libc maps through its own internal calls (malloc's arenas, threads' stacks) and what goes by the raw
 * system call.
 *
 * Measured (bench/capture.sh, load 13), ns for a page mapped and unmapped: native 1425 [1329..1435], attached
 * 1453 [1359..1464], recorded but not sampled 1477 [1420..1488].
 */
#ifndef PRELOAD_MMAP_H
#define PRELOAD_MMAP_H

/* From now on mappings are recorded. In the constructor, after place_open. */
void mmap_open(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory in which goroutines have their stacks. Where Go calls C it leaves the goroutine's stack for its
 * thread's own, so a walk of that stack ends with the call (proto/walk.h, walk_go_rule). The goroutine stays
 * where it is until the call returns: its stack may be read if its memory is known to be readable.
 *
 * Go's runtime maps its heap, and so its stacks, at addresses of its own choice; in a program that has C code
 * too it does that by the libc's mmap (runtime/cgo/mmap.go). Our hook notes such mappings until something
 * takes them away, if an object of Go's is there when the program starts. In other programs a row with Go's
 * rule, which a forked child with other rights may have forged, leads nowhere: no memory is known.
 */
#ifndef PRELOAD_GOROUTINE_H
#define PRELOAD_GOROUTINE_H

#include <stddef.h>
#include <stdint.h>

/* From now on mappings are noted: the program is Go's. Not to be called in a process that was attached to:
 * what that process has loaded may have found the address of munmap before, and calls munmap without our
 * hook. */
void goroutine_open(void);

/* Not 0: some memory is known. */
extern uintptr_t goroutine_memory_known __attribute__((visibility("hidden")));

/* The program has placed readable memory of its own there. What has no room to be noted is not known. */
void goroutine_mapped(const void *start, size_t bytes);

/* Call before memory is unmapped, replaced, or made unreadable. */
void goroutine_unmapped(const void *start, size_t bytes);

/* The end of the known memory that has the address; 0: it is in none. */
uintptr_t goroutine_memory_end(uintptr_t address);

#endif

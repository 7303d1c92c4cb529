/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last level of live.h. It is mapped when the levels before it are full: the period has become smaller
 * since the start, or the heap is larger than the period made likely (tables.h).
 */
#ifndef PRELOAD_LAST_LEVEL_H
#define PRELOAD_LAST_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* The process has a region, perhaps another than before: the level may be mapped once more. */
void last_level_open(void);

/* Maps the level, if that is what lacks. Calls mmap and madvise, once for each region; also munlock and
 * mprotect if the program locks its memory. Makes no system call if the program is known to have a seccomp
 * filter. False: nothing was mapped. Keeps errno. */
bool last_level_add(void);

/* How many bytes were mapped; 0: none. *start: where. */
uint64_t last_level_bytes(uintptr_t *start);

/* Unmaps them. The level is not in use any more (live_close). */
void last_level_close(void);

#endif

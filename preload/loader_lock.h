/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock that glibc's loader holds while it maps, relocates and protects an object (dl_load_lock). Import
 * slots are only changed under it: a page that another thread's dlopen makes read-only at that moment would
 * be our crash. It has no name that can be linked; but while a constructor runs it is the one recursive mutex
 * in the loader's global data that the calling thread holds.
 */
#ifndef PRELOAD_LOADER_LOCK_H
#define PRELOAD_LOADER_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* In a constructor that dlopen runs, by the thread of that id. False: not found. */
bool loader_lock_find(uint32_t tid);

/* Recursive. False: there is none. */
bool loader_lock_take(void);
void loader_lock_release(void);

#endif

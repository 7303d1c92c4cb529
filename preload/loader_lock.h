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

/*
 * The lock of the loader's list of objects, which dl_iterate_phdr holds, and dlopen and dlclose while they
 * change the list. A dlclose that does no more than count down does not take it. So who looks at the list
 * beside such a call must not wait for it: its holder may be waiting for us. And fork() leaves it locked in
 * the child, where its holder is no more.
 */
void loader_lock_find_list(void);

/* False: another thread has it, or this one by this function, or it was not found; or the libc is
 * musl. */
bool loader_lock_try_list(void);
void loader_lock_release_list(void);

/* In a forked child: releases what another thread of the parent's had by loader_lock_try_list. */
void loader_lock_forked(uint32_t parent_tid);

#endif

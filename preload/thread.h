/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hook must know about the calling thread without a system call: its id and the bounds of its
 * stack.
 *
 * Id: glibc keeps the kernel's thread id in its thread control block, at an offset that libc.so itself
 * publishes for debuggers (_thread_db_pthread_tid, and the block's size, _thread_db_sizeof_pthread); checked
 * once in the constructor, and 0 ("unknown") if that check fails. Stack: pthread_getattr_np would take locks
 * and open files (it deadlocks inside malloc); so the main thread's bounds come from the loader, those of
 * other threads from the attributes passed to pthread_create.
 */
#ifndef PRELOAD_THREAD_H
#define PRELOAD_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before the first event. On the main thread, whose id is the process'; or on any one (main: false), and then
 * tid is that one's. 0: unknown, because the kernel must not be asked (a filter is in force). */
void thread_open(uint32_t tid, bool main);

/* The stacks of threads that ran before this library was loaded, sorted. They are copied: whoever has the
 * region mapped, a child with fewer rights among them, may change them later, and bounds that are too wide
 * would make a copy end the program. */
struct region_stack;
void thread_know_stacks(const struct region_stack *stacks, uint32_t count, uint32_t main_tid);

/* Looks for the caller's own among these, unless its bounds are known. */
void thread_find_bounds(void);

/* Kernel thread id of the caller, 0 unknown. Also valid in a forked child. */
uint32_t thread_tid(void);

/* At a thread's first sampled event: notes its id. */
void thread_first_event(void);

bool thread_libc_is_glibc(void);

/* End of the main thread's stack; 0 unknown. */
uintptr_t thread_main_stack_end(void);

/* Whether the caller runs on the main thread's stack; false if that is not known. */
bool thread_on_main_stack(void);

/* The program has a mapping there now. Between one within the range that may be the main thread's stack, and
 * that stack, there may be nothing: what lies below the mapping's end is not read as the stack any more. */
void thread_mapped(const void *start, size_t bytes);

/* The program is about to take away that these pages can be read (a guard of a stack that it has cut out of
 * the caller's, or of the main thread's): likewise. */
void thread_unreadable(const void *start, size_t bytes);

/* Before a thread is created with these: makes the thread start in a function of ours, which notes the bounds
 * of its stack and then calls the program's. NULL: too many threads are being created at once; nothing was
 * changed, and copied stacks of that thread end with the page of its stack pointer. */
struct thread_begin;
struct thread_begin *thread_creating(const pthread_attr_t *attr, void *(**function)(void *), void **argument);

/* The thread was not created. begin may be NULL. */
void thread_not_created(struct thread_begin *begin);

#endif

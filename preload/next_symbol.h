/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next definition of each hooked function: glibc's, or whatever allocator the program brought (never
 * __libc_malloc, which would replace it). Every pointer starts at a function that looks the real one up
 * first, so a hook may be called at any time, also before the library's constructor, and never tests for
 * NULL.
 */
#ifndef PRELOAD_NEXT_SYMBOL_H
#define PRELOAD_NEXT_SYMBOL_H

#include "preload/operators.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct real {
	_Alignas(4096) void *(*malloc)(size_t size); /* has its page for itself, see attach_construct */
	void (*free)(void *pointer);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *pointer, size_t size);
	void *(*reallocarray)(void *pointer, size_t count, size_t size);
	int (*posix_memalign)(void **out, size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
	void (*free_sized)(void *pointer, size_t size);
	void (*free_aligned_sized)(void *pointer, size_t alignment, size_t size);
	void *(*mmap)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
	void *(*mmap64)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
	void *(*mremap)(void *old, size_t old_length, size_t new_length, int flags, ...);
	int (*munmap)(void *address, size_t length);
	operator_function *operator_go[OPERATORS];   /* where the exported operators jump: see operators.h */
	operator_function *operator_next[OPERATORS]; /* the next definitions; NULL: there is none (yet) */
	int (*pthread_create)(
	    pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument);
};

extern struct real real;

/* Looks up whatever is not known yet. Called by the constructor and by the first hook that is reached before
 * it. */
void next_symbol_resolve(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next definition of each hooked function: glibc's, or whatever allocator the program brought (never __libc_malloc,
 * which would replace it). Every pointer starts at a function that looks the real one up first, so a hook may be
 * called at any time, also before the library's constructor, and never tests for NULL.
 */
#ifndef PRELOAD_REAL_H
#define PRELOAD_REAL_H

#include <pthread.h>
#include <stddef.h>

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
	int (*pthread_create)(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument);
};

extern struct real real;

/* Looks up whatever is not known yet. Called by the constructor and by the first hook that is reached before it. */
void real_resolve(void);

#endif

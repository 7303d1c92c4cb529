/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/real.h"

#include "preload/live.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* 64 KiB were never used by any libc measured; the bound is what counts. Zero-filled, so calloc needs no memset. */
enum {
	ARENA_BYTES = 64 * 1024,
	ARENA_ALIGN = 64,
};
static _Alignas(4096) unsigned char arena[ARENA_BYTES];
static _Atomic size_t arena_used;

/* volatile: dlsym is declared "leaf" (never calls back into this file), so a plain store before it would be dropped;
 * but its failure path mallocs its error message. */
static __thread volatile int resolving __attribute__((tls_model("initial-exec")));

static void *arena_alloc(size_t size)
{
	if (size > ARENA_BYTES) {
		errno = ENOMEM;
		return NULL;
	}
	size_t need = (size + sizeof(size_t) + 2 * ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	size_t at = atomic_fetch_add(&arena_used, need);
	if (at + need > ARENA_BYTES) {
		errno = ENOMEM;
		return NULL;
	}
	unsigned char *block = arena + at + ARENA_ALIGN;
	memcpy(block - sizeof(size_t), &size, sizeof(size));
	live_pin(block); /* so that free() and realloc() look closer and find real_in_arena() */
	return block;
}

bool real_in_arena(const void *pointer)
{
	return (uintptr_t)pointer - (uintptr_t)arena < ARENA_BYTES;
}

size_t real_arena_bytes(const void *pointer)
{
	size_t size;
	memcpy(&size, (const unsigned char *)pointer - sizeof(size_t), sizeof(size));
	return size;
}

/* First-call versions. While this thread is inside dlsym they serve from the arena instead of looping. */

static void *first_malloc(size_t size)
{
	if (resolving)
		return arena_alloc(size);
	real_resolve();
	return real.malloc(size);
}

static void *first_calloc(size_t count, size_t size)
{
	size_t bytes;
	if (resolving) {
		if (__builtin_mul_overflow(count, size, &bytes)) {
			errno = ENOMEM;
			return NULL;
		}
		return arena_alloc(bytes);
	}
	real_resolve();
	return real.calloc(count, size);
}

static void first_free(void *pointer)
{
	if (resolving || real_in_arena(pointer))
		return;
	real_resolve();
	real.free(pointer);
}

static void *first_realloc(void *pointer, size_t size)
{
	if (resolving) {
		void *block = arena_alloc(size);
		if (block && pointer) {
			size_t old = real_in_arena(pointer) ? real_arena_bytes(pointer) : 0;
			memcpy(block, pointer, old < size ? old : size);
		}
		return block;
	}
	real_resolve();
	return real.realloc(pointer, size);
}

static void *first_reallocarray(void *pointer, size_t count, size_t size)
{
	real_resolve();
	return real.reallocarray(pointer, count, size);
}

static int first_posix_memalign(void **out, size_t alignment, size_t size)
{
	real_resolve();
	return real.posix_memalign(out, alignment, size);
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
	real_resolve();
	return real.aligned_alloc(alignment, size);
}

static void *first_memalign(size_t alignment, size_t size)
{
	real_resolve();
	return real.memalign(alignment, size);
}

static void *first_valloc(size_t size)
{
	real_resolve();
	return real.valloc(size);
}

static void *first_pvalloc(size_t size)
{
	real_resolve();
	return real.pvalloc(size);
}

static void first_free_sized(void *pointer, size_t size)
{
	real_resolve();
	real.free_sized(pointer, size);
}

static void first_free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
	real_resolve();
	real.free_aligned_sized(pointer, alignment, size);
}

static int first_pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	real_resolve();
	return real.pthread_create(thread, attr, start, argument);
}

struct real real = {
    .malloc = first_malloc,
    .free = first_free,
    .calloc = first_calloc,
    .realloc = first_realloc,
    .reallocarray = first_reallocarray,
    .posix_memalign = first_posix_memalign,
    .aligned_alloc = first_aligned_alloc,
    .memalign = first_memalign,
    .valloc = first_valloc,
    .pvalloc = first_pvalloc,
    .free_sized = first_free_sized,
    .free_aligned_sized = first_free_aligned_sized,
    .pthread_create = first_pthread_create,
};

/* What a libc that lacks the function would have done without us: the program could not have linked against it, so
 * these are reached only by programs built for a newer libc and C23's functions, which are free with a hint. */

static void *missing_alloc(void)
{
	errno = ENOMEM;
	return NULL;
}

static int missing_posix_memalign(void **out, size_t alignment, size_t size)
{
	return ENOMEM;
}

static void plain_free_sized(void *pointer, size_t size)
{
	real.free(pointer);
}

static void plain_free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
	real.free(pointer);
}

static void *plain_reallocarray(void *pointer, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return real.realloc(pointer, bytes);
}

static int missing_pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	return EAGAIN;
}

/* dlsym's result is a data pointer; POSIX promises that the conversion works. */
#define RESOLVE(name, fallback)                                                                                        \
	do {                                                                                                           \
		void *found = dlsym(RTLD_NEXT, #name);                                                                 \
		next.name = found ? (__typeof__(next.name))(uintptr_t)found : (__typeof__(next.name))(uintptr_t)(fallback);       \
	} while (0)

void real_resolve(void)
{
	if (resolving)
		return;
	resolving = 1;
	int saved = errno;
	struct real next;
	RESOLVE(malloc, missing_alloc);
	RESOLVE(free, plain_free_sized); /* cannot be: every libc has free */
	RESOLVE(calloc, missing_alloc);
	RESOLVE(realloc, missing_alloc);
	RESOLVE(reallocarray, plain_reallocarray);
	RESOLVE(posix_memalign, missing_posix_memalign);
	RESOLVE(aligned_alloc, missing_alloc);
	RESOLVE(memalign, missing_alloc);
	RESOLVE(valloc, missing_alloc);
	RESOLVE(pvalloc, missing_alloc);
	RESOLVE(free_sized, plain_free_sized);
	RESOLVE(free_aligned_sized, plain_free_aligned_sized);
	RESOLVE(pthread_create, missing_pthread_create);
	real = next; /* two threads that race here store the same pointers */
	dlerror();   /* a miss leaves a message behind that the program might read as its own */
	errno = saved;
	resolving = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A preloaded library that does nothing but forward malloc and free: what any interposition costs at the
 * least. */
#include <dlfcn.h>
#include <stddef.h>

static void *first_malloc(size_t size);
static void first_free(void *pointer);
static void *(*next_malloc)(size_t size) = first_malloc;
static void (*next_free)(void *pointer) = first_free;

__attribute__((constructor)) static void resolve(void)
{
	next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

static void *first_malloc(size_t size)
{
	resolve();
	return next_malloc(size);
}

static void first_free(void *pointer)
{
	resolve();
	next_free(pointer);
}

void *malloc(size_t size)
{
	return next_malloc(size);
}

void free(void *pointer)
{
	next_free(pointer);
}

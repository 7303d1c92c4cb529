/* SPDX-License-Identifier: Apache-2.0 */
/* build: -shared -fPIC -fvisibility=hidden -fno-plt -fno-builtin -Wl,-z,now */
/* The least that a preloaded library can do: call the next definition. The floor under every profiler of this
 * kind. */
#include <dlfcn.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Each pointer starts at a function that looks the real one up; the constructor has mostly been there before:
 * a dlsym that fails allocates, and must not come back to itself. */
#define FORWARD(type, name, parameters, arguments)                         \
	static type first_##name parameters;                               \
	static type(*real_##name) parameters = first_##name;               \
	static type first_##name parameters                                \
	{                                                                  \
		real_##name = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
		return real_##name arguments;                              \
	}                                                                  \
	static __attribute__((constructor)) void find_##name(void)         \
	{                                                                  \
		real_##name = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
	}                                                                  \
	EXPORT type name parameters;                                       \
	EXPORT type name parameters                                        \
	{                                                                  \
		return real_##name arguments;                              \
	}

FORWARD(void *, malloc, (size_t size), (size))
FORWARD(void, free, (void *pointer), (pointer))
FORWARD(void *, calloc, (size_t count, size_t size), (count, size))
FORWARD(void *, realloc, (void *pointer, size_t size), (pointer, size))
FORWARD(int, posix_memalign, (void **out, size_t alignment, size_t size), (out, alignment, size))
FORWARD(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
FORWARD(void *, memalign, (size_t alignment, size_t size), (alignment, size))

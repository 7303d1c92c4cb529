/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/allocator_names.h"

#include "pprof/table/array.h"

#include <stddef.h>
#include <string.h>

/* Several of each, since a linker leaves out what a program does not call. */
static const char *const functions[] = {"mallocx", "rallocx", "sdallocx", "je_malloc", "je_mallocx",
    "je_sdallocx", "_rjem_malloc", "_rjem_mallocx", "_rjem_sdallocx", "mi_malloc", "mi_malloc_aligned",
    "mi_heap_malloc", "tc_malloc", "tc_new", "TCMallocInternalMalloc", "TCMallocInternalNew"};

const char *allocator_names_at(size_t index)
{
	return index < ARRAY_COUNT(functions) ? functions[index] : NULL;
}

bool allocator_names_function(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(functions); i++)
		if (strcmp(name, functions[i]) == 0)
			return true;
	return false;
}

bool allocator_names_library(const char *name)
{
	static const char *const names[] = {"libjemalloc", "libmimalloc", "libtcmalloc"};

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/hook_table.h"

#include "preload/loader_calls.h"
#include "preload/next_symbol.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FUNCTIONS_MOST = 64 };

void free_sized(void *pointer, size_t size);
void free_aligned_sized(void *pointer, size_t alignment, size_t size);

#define OPERATOR_DECLARE_HOOK(name) operator_function name;
OPERATORS_NEW(OPERATOR_DECLARE_HOOK)
OPERATORS_DELETE(OPERATOR_DECLARE_HOOK)

static struct import functions[FUNCTIONS_MOST];
static size_t function_count;

static void add(const char *name, uintptr_t next, uintptr_t hook, bool allocates)
{
	if (function_count < FUNCTIONS_MOST)
		functions[function_count++] = (struct import){name, next, hook, allocates};
}

#define ADD(name, allocates) add(#name, (uintptr_t)real.name, (uintptr_t)name, allocates)
#define ADD_OPERATOR(name)                                                                                 \
	add(#name, next_symbol_counts(OPERATOR##name) ? (uintptr_t)real.operator_next[OPERATOR##name] : 0, \
	    (uintptr_t)name, false);

void hook_table_fill(bool mappings)
{
	function_count = 0;
	ADD(malloc, true);
	ADD(free, true);
	ADD(calloc, true);
	ADD(realloc, true);
	ADD(reallocarray, false);
	ADD(posix_memalign, false);
	ADD(aligned_alloc, false);
	ADD(memalign, false);
	ADD(valloc, false);
	ADD(pvalloc, false);
	ADD(free_sized, false);
	ADD(free_aligned_sized, false);
	OPERATORS_NEW(ADD_OPERATOR)
	OPERATORS_DELETE(ADD_OPERATOR)
	ADD(pthread_create, false);
	ADD(dlclose, false);
	ADD(prctl, false);
	ADD(setuid, false);
	ADD(setreuid, false);
	ADD(setresuid, false);
	ADD(mlockall, false);
	ADD(setrlimit, false);
	ADD(setrlimit64, false);
	ADD(prlimit, false);
	ADD(prlimit64, false);
	/* also for what they say of stacks (thread_mapped, thread_unreadable) */
	ADD(mmap, false);
	ADD(mmap64, false);
	ADD(mremap, false);
	ADD(mprotect, false);
	if (mappings)
		ADD(munmap, false);
	for (size_t i = 0; i < LOADER_CALLS; i++)
		add(loader_calls[i].name, loader_calls[i].real, loader_calls[i].hook, false);
}

const struct import *hook_table(size_t *count)
{
	*count = function_count;
	return function_count ? functions : NULL;
}

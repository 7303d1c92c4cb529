/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaching to a process that runs already, from inside: the constructor and the entries of
 * libheaptap-attach.so, which has no constructor.c and exports no hook.
 *
 * The sampler makes one thread of the process call these, at a point where it is neither in the allocator nor
 * in the loader (sampler/inject). The other threads run on. So everything here that they may meet is done by
 * single stores: first the place is open, then the slots lead to the hooks; and at the end no more samples
 * are taken, then the slots lead back, then the region makes way for zeroes, in which a thread that has been
 * in a hook all the while does no harm. The library is never unloaded.
 */
#include "preload/attach.h"
#include "preload/claim.h"
#include "preload/import.h"
#include "preload/live.h"
#include "preload/loader_lock.h"
#include "preload/lookup.h"
#include "preload/mapping.h"
#include "preload/memory.h"
#include "preload/mmap.h"
#include "preload/next_symbol.h"
#include "preload/session.h"
#include "preload/slot.h"
#include "preload/thread.h"
#include "proto/attach_request.h"
#include "proto/region.h"
#include "proto/region_layout.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The sampler knows the names (proto/attach_request.h). Both functions keep errno, and do nothing if there is
 * nothing to do. */
extern struct attach_request heaptap_attach_request;
void heaptap_attach(void);
void heaptap_detach(void);

EXPORT struct attach_request heaptap_attach_request = {.magic = ATTACH_REQUEST_MAGIC, .abi = REGION_ABI};

/* ---- the loader's calls */

/*
 * dlopen, dlsym and dlvsym as a program calls them that was attached to: the slots of objects that came since
 * lead to the hooks before the program can call any of them.
 *
 * These functions depend on who calls them (the caller's RUNPATH; RTLD_NEXT). So each is entered by a jump,
 * with the program's own return address, after the look. Only dlopen by a plain path, which does not depend
 * on that, is called, so that the object's slots are turned as soon as it is there; for other names that is
 * done at the next of these calls. What an object's constructors allocate goes unseen.
 */
struct loader_call {
	const char *name;
	uintptr_t real; /* 0: not found */
	uintptr_t hook;
};

enum { DLOPEN, DLSYM, DLVSYM, LOADER_CALLS };

void loader_calls_dlopen(void);
void loader_calls_dlsym(void);
void loader_calls_dlvsym(void);
void loader_calls_look(void);
bool loader_calls_is_plain(const char *file);
void *loader_calls_open_plain(const char *file, int mode);

/* What the jumps go to. */
__attribute__((used)) uintptr_t loader_calls_real[LOADER_CALLS] __attribute__((visibility("hidden")));

static struct loader_call loader_calls[LOADER_CALLS] = {
    [DLOPEN] = {.name = "dlopen", .hook = (uintptr_t)loader_calls_dlopen},
    [DLSYM] = {.name = "dlsym", .hook = (uintptr_t)loader_calls_dlsym},
    [DLVSYM] = {.name = "dlvsym", .hook = (uintptr_t)loader_calls_dlvsym},
};

static void (*look_for_objects)(void);

/* Finds the functions themselves. look: called where objects may be new. */
static void loader_calls_resolve(void (*look)(void))
{
	look_for_objects = look;
	struct lookup wishes[LOADER_CALLS];
	for (int i = 0; i < LOADER_CALLS; i++)
		wishes[i].name = loader_calls[i].name;
	lookup_next(wishes, LOADER_CALLS);
	for (int i = 0; i < LOADER_CALLS; i++)
		loader_calls[i].real = loader_calls_real[i] = (uintptr_t)wishes[i].found;
}

__attribute__((used)) void loader_calls_look(void)
{
	int saved = errno;

	if (claim_ready())
		look_for_objects();
	errno = saved;
}

/* The loader looks at its caller for names without a slash, and for those with $ORIGIN. */
__attribute__((used)) bool loader_calls_is_plain(const char *file)
{
	loader_calls_look();
	return file && strchr(file, '/') && !strchr(file, '$');
}

__attribute__((used)) void *loader_calls_open_plain(const char *file, int mode)
{
	void *(*open_object)(const char *, int) = (void *(*)(const char *, int))loader_calls_real[DLOPEN];
	void *object = open_object(file, mode);

	loader_calls_look();
	return object;
}

#if defined(__x86_64__)
/* Three pushes keep the stack aligned for the call. */
__asm__(".pushsection .text\n"
        ".macro loader_call name, number\n"
        ".globl loader_calls_\\name\n.hidden loader_calls_\\name\n"
        ".type loader_calls_\\name, @function\n"
        "loader_calls_\\name:\n.cfi_startproc\n"
        "push %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n.cfi_adjust_cfa_offset 8\n"
        "push %rdx\n.cfi_adjust_cfa_offset 8\n"
        ".if \\number\ncall loader_calls_look\n.else\ncall loader_calls_is_plain\n.endif\n"
        "pop %rdx\n.cfi_adjust_cfa_offset -8\npop %rsi\n.cfi_adjust_cfa_offset -8\n"
        "pop %rdi\n.cfi_adjust_cfa_offset -8\n"
        ".if \\number\n.else\ntest %al, %al\njnz loader_calls_open_plain\n.endif\n"
        "jmp *loader_calls_real+8*\\number(%rip)\n"
        ".cfi_endproc\n.size loader_calls_\\name, .-loader_calls_\\name\n"
        ".endm\n"
        "loader_call dlopen, 0\nloader_call dlsym, 1\nloader_call dlvsym, 2\n"
        ".popsection\n");
#else
#error "attaching is for x86-64"
#endif

/* ---- the hooks */

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

/* Once next_symbol_resolve has run. mappings: the hook for munmap too. */
static void hook_table_fill(bool mappings)
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

/* Which hook stands for which function; NULL before hook_table_fill. */
static const struct import *hook_table(size_t *count)
{
	*count = function_count;
	return function_count ? functions : NULL;
}

/* ---- a region and its end */

/* Where the last region was: zeroes now. */
static void *left;
static uint64_t left_bytes;

static void tell_imports(struct region_header *header)
{
	strncpy(header->unseen_files, import_unseen(), sizeof(header->unseen_files) - 1);
	if (header->unseen_files[0])
		header->unseen |= REGION_UNSEEN_FILES;
	atomic_store(&header->imports, import_count());
}

/* What the region before left behind; no hook is called now. */
static void forget(void)
{
	if (!left)
		return;
	mapping_clear();
	live_clear();
	slot_reset();
	mmap_open();
}

/* What threads watch that have taken samples for the region before (region_set_period). */
static uint32_t watched;

/* Whatever a thread watches from before, it comes by with its first allocation. */
static void recount(struct region_header *header)
{
	atomic_store(&header->watch, watched);
	region_recount(header);
}

/* Likewise of threads that watch zeroes in place of a header. */
static void recount_left(void)
{
	struct region_header *zeroes = left;

	for (uint32_t i = 0; i < REGION_WATCHES; i++)
		atomic_store(&zeroes->extra_bytes[i], REGION_EXTRA_BYTES);
}

static void take_out(void)
{
	size_t count;
	const struct import *imports = hook_table(&count);

	if (!imports || !left)
		return;
	if (place_header())
		claim_turning(left, left_bytes);
	claim_detach();
	import_turn_back(imports, count);
	if (!place_header())
		return; /* it was given back because of a limit */
	watched = atomic_load(&place_header()->watch) % REGION_WATCHES;
	place_cover_grown();
	(void)memory_cover(left, left_bytes);
	recount_left();
}

/* The region is not used. Where one was before, a thread may still be in a hook. */
static void take_away(bool again)
{
	if (again && memory_cover(left, left_bytes))
		return;
	memory_unmap(left, left_bytes);
	left = NULL;
}

static bool begin(void)
{
	size_t count;
	uint32_t attaching = REGION_ATTACHING;

	forget();
	if (!place_header())
		left = NULL; /* given back because of a limit: others may have mapped something there */
	if (!left) /* the calls that this takes here are the loader's own, whatever filter there is */
		memory_map_lazily(true);
	const void *before = left;
	struct region_header *header =
	    session_region_at(heaptap_attach_request.region_path, left, left_bytes);
	heaptap_attach_request.region_path[0] = '\0';
	if (!header)
		return false;
	left = header;
	left_bytes = region_start_bytes(header);
	claim_turning(left, left_bytes);
	/* A filter that the program installs later may not know mremap, which a detach would use then. */
	memory_map_lazily(header->filtered != 1 && memory_is_made_at_once());
	if (header == before && header->filtered != 1)
		session_ask_limits();
	thread_know_stacks((const void *)((unsigned char *)header + header->offsets.stacks),
	    header->thread_stacks, (uint32_t)getpid());
	recount(header);
	if (!attach_to(header, header->filtered == 1, true)) {
		take_away(header == before);
		return false;
	}
	thread_mapped((const void *)(uintptr_t)header->below_main_stack, 0);
	hook_table_fill(header->record_mmap == 1);
	const struct import *imports = hook_table(&count);
	import_turn(imports, count);
	tell_imports(header);
	if (!atomic_compare_exchange_strong(&header->attaching, &attaching, REGION_ATTACHED)) {
		take_out();
		return true;
	}
	heaptap_attach_request.attachments++;
	atomic_store_explicit(&header->state, REGION_READY, memory_order_release);
	return true;
}

EXPORT void heaptap_attach(void)
{
	int saved = errno;
	enum claim_state now = claim_state();
	bool idle = now == CLAIM_EARLY || now == CLAIM_CLOSED || now == CLAIM_DETACHED;

	if (idle && heaptap_attach_request.region_path[0] && !begin())
		claim_detach();
	claim_turning(NULL, 0);
	errno = saved;
}

EXPORT void heaptap_detach(void)
{
	int saved = errno;

	take_out();
	claim_turning(NULL, 0);
	errno = saved;
}

static void turn_new(void)
{
	size_t count;
	const struct import *imports = hook_table(&count);

	if (!imports || !loader_lock_take())
		return;
	/* Else it is done at the next of these calls. */
	if (loader_lock_try_list()) {
		if (import_turn_new(imports, count))
			tell_imports(left);
		loader_lock_release_list();
	}
	loader_lock_release();
}

/* The region is beside the library, which knows its own name from the loader. */
static int find_own_name(struct dl_phdr_info *info, size_t size, void *argument)
{
	static const char *const names[][2] = {
	    {ATTACH_LIBRARY_FD_NAME, ATTACH_REGION_FD_NAME},
	    {ATTACH_LIBRARY_FILE, ATTACH_REGION_FILE},
	};
	char *path = argument;
	const char *slash = strrchr(info->dlpi_name, '/');
	size_t folder = slash ? (size_t)(slash + 1 - info->dlpi_name) : 0;

	if (!lookup_is_ours(info))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slash && strcmp(slash + 1, names[i][0]) == 0 &&
		    folder + strlen(names[i][1]) < sizeof(heaptap_attach_request.region_path)) {
			memcpy(path, info->dlpi_name, folder);
			strcpy(path + folder, names[i][1]);
		}
	return 1;
}

/* Two heaptaps that did not see each other, from two containers perhaps: the first stays. */
static bool is_alone(void)
{
	struct lookup other = {.name = ATTACH_REQUEST_SYMBOL};

	lookup_next(&other, 1);
	if (other.found)
		heaptap_attach_request.abi = 0;
	return !other.found;
}

/* By dlopen, and so under the loader's lock. */
__attribute__((constructor)) static void construct(void)
{
	int saved = errno;

	lookup_everywhere();
	if (is_alone()) {
		next_symbol_resolve();
		loader_calls_resolve(turn_new);
		lookup_each(find_own_name, heaptap_attach_request.region_path);
		if (loader_lock_find((uint32_t)syscall(SYS_gettid)))
			heaptap_attach();
	}
	next_symbol_protect(getauxval(AT_PAGESZ));
	errno = saved;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/next_symbol.h"

#include "preload/lookup.h"
#include "preload/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* First-call versions. The lookup allocates nothing, so none of them can be reached from inside it. */

static void *first_malloc(size_t size)
{
	next_symbol_resolve();
	return real.malloc(size);
}

static void *first_calloc(size_t count, size_t size)
{
	next_symbol_resolve();
	return real.calloc(count, size);
}

static void first_free(void *pointer)
{
	next_symbol_resolve();
	real.free(pointer);
}

static void *first_realloc(void *pointer, size_t size)
{
	next_symbol_resolve();
	return real.realloc(pointer, size);
}

static void *first_reallocarray(void *pointer, size_t count, size_t size)
{
	next_symbol_resolve();
	return real.reallocarray(pointer, count, size);
}

static int first_posix_memalign(void **out, size_t alignment, size_t size)
{
	next_symbol_resolve();
	return real.posix_memalign(out, alignment, size);
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
	next_symbol_resolve();
	return real.aligned_alloc(alignment, size);
}

static void *first_memalign(size_t alignment, size_t size)
{
	next_symbol_resolve();
	return real.memalign(alignment, size);
}

static void *first_valloc(size_t size)
{
	next_symbol_resolve();
	return real.valloc(size);
}

static void *first_pvalloc(size_t size)
{
	next_symbol_resolve();
	return real.pvalloc(size);
}

static void first_free_sized(void *pointer, size_t size)
{
	next_symbol_resolve();
	real.free_sized(pointer, size);
}

static void first_free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
	next_symbol_resolve();
	real.free_aligned_sized(pointer, alignment, size);
}

static void *first_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	next_symbol_resolve();
	return real.mmap(address, length, protection, flags, fd, offset);
}

static void *first_mremap(void *old, size_t old_length, size_t new_length, int flags, ...)
{
	va_list arguments;

	va_start(arguments, flags);
	void *new = va_arg(arguments, void *); /* a register's contents if there is none */
	va_end(arguments);
	next_symbol_resolve();
	return real.mremap(old, old_length, new_length, flags, new);
}

static int first_munmap(void *address, size_t length)
{
	next_symbol_resolve();
	return real.munmap(address, length);
}

static int first_mprotect(void *address, size_t length, int protection)
{
	next_symbol_resolve();
	return real.mprotect(address, length, protection);
}

static int first_pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	next_symbol_resolve();
	return real.pthread_create(thread, attr, start, argument);
}

static int first_dlclose(void *handle)
{
	next_symbol_resolve();
	return real.dlclose(handle);
}

static int first_prctl(int option, ...)
{
	unsigned long arguments[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		arguments[i] = va_arg(list, unsigned long);
	va_end(list);
	next_symbol_resolve();
	return real.prctl(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

static int first_setuid(uid_t user)
{
	next_symbol_resolve();
	return real.setuid(user);
}

static int first_setreuid(uid_t user, uid_t effective)
{
	next_symbol_resolve();
	return real.setreuid(user, effective);
}

static int first_setresuid(uid_t user, uid_t effective, uid_t saved)
{
	next_symbol_resolve();
	return real.setresuid(user, effective, saved);
}

static int first_mlockall(int flags)
{
	next_symbol_resolve();
	return real.mlockall(flags);
}

static int first_setrlimit(int resource, const struct rlimit *limit)
{
	next_symbol_resolve();
	return real.setrlimit(resource, limit);
}

static int first_setrlimit64(int resource, const struct rlimit64 *limit)
{
	next_symbol_resolve();
	return real.setrlimit64(resource, limit);
}

static int first_prlimit(pid_t pid, int resource, const struct rlimit *limit, struct rlimit *before)
{
	next_symbol_resolve();
	return real.prlimit(pid, resource, limit, before);
}

static int first_prlimit64(pid_t pid, int resource, const struct rlimit64 *limit, struct rlimit64 *before)
{
	next_symbol_resolve();
	return real.prlimit64(pid, resource, limit, before);
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
    .mmap = first_mmap,
    .mmap64 = first_mmap,
    .mremap = first_mremap,
    .munmap = first_munmap,
    .mprotect = first_mprotect,
    .operator_go = OPERATORS_FIRST,
    .pthread_create = first_pthread_create,
    .dlclose = first_dlclose,
    .prctl = first_prctl,
    .setuid = first_setuid,
    .setreuid = first_setreuid,
    .setresuid = first_setresuid,
    .mlockall = first_mlockall,
    .setrlimit = first_setrlimit,
    .setrlimit64 = first_setrlimit64,
    .prlimit = first_prlimit,
    .prlimit64 = first_prlimit64,
};

/* For functions that the libc lacks. A program that uses one could not have been linked against this libc, so
 * these are reached only through C23's functions, which are free with a hint, and by programs built for a
 * newer libc. */

static void *missing_alloc(void)
{
	errno = ENOMEM;
	return NULL;
}

static void missing_free(void *pointer)
{
}

static int missing_posix_memalign(void **out, size_t alignment, size_t size)
{
	return ENOMEM;
}

/* The block may come from the program's own malloc (a sanitizer's), which comes before ours. */
static void (*own_free)(void *pointer);

static void plain_free_sized(void *pointer, size_t size)
{
	(own_free ? own_free : real.free)(pointer);
}

static void plain_free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
	(own_free ? own_free : real.free)(pointer);
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

/* If the libc lacks the function, the system call is used. */
static void *plain_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

static void *plain_mremap(void *old, size_t old_length, size_t new_length, int flags, ...)
{
	va_list arguments;

	va_start(arguments, flags);
	void *new = va_arg(arguments, void *);
	va_end(arguments);
	return (void *)syscall(SYS_mremap, old, old_length, new_length, flags, new);
}

static int plain_munmap(void *address, size_t length)
{
	return (int)syscall(SYS_munmap, address, length);
}

static int plain_mprotect(void *address, size_t length, int protection)
{
	return (int)syscall(SYS_mprotect, address, length, protection);
}

static int plain_mlockall(int flags)
{
	return (int)syscall(SYS_mlockall, flags);
}

/* On 64 bits both forms of the structure are the kernel's. musl has no functions for the second. */
static int plain_prlimit(pid_t pid, int resource, const struct rlimit *limit, struct rlimit *before)
{
	return (int)syscall(SYS_prlimit64, pid, resource, limit, before);
}

static int plain_setrlimit(int resource, const struct rlimit *limit)
{
	return plain_prlimit(0, resource, limit, NULL);
}

static int missing_pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	return EAGAIN;
}

/* Before glibc 2.34 it is in libdl, which may come with a library that is loaded later. */
static int late_dlclose(void *handle)
{
	struct lookup wish = {.name = "dlclose"};

	lookup_next(&wish, 1);
	int (*found)(void *) = (int (*)(void *))(uintptr_t)wish.found;
	return found ? found(handle) : -1;
}

static int missing_set_user(void)
{
	errno = ENOSYS;
	return -1;
}

static int plain_prctl(int option, ...)
{
	unsigned long arguments[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		arguments[i] = va_arg(list, unsigned long);
	va_end(list);
	return (int)syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

enum wish {
	WISH_MALLOC,
	WISH_FREE,
	WISH_CALLOC,
	WISH_REALLOC,
	WISH_REALLOCARRAY,
	WISH_POSIX_MEMALIGN,
	WISH_ALIGNED_ALLOC,
	WISH_MEMALIGN,
	WISH_VALLOC,
	WISH_PVALLOC,
	WISH_FREE_SIZED,
	WISH_FREE_ALIGNED_SIZED,
	WISH_MMAP,
	WISH_MMAP64,
	WISH_MREMAP,
	WISH_MUNMAP,
	WISH_MPROTECT,
	WISH_PTHREAD_CREATE,
	WISH_DLCLOSE,
	WISH_PRCTL,
	WISH_SETUID,
	WISH_SETREUID,
	WISH_SETRESUID,
	WISH_MLOCKALL,
	WISH_SETRLIMIT,
	WISH_SETRLIMIT64,
	WISH_PRLIMIT,
	WISH_PRLIMIT64,
	WISHES,
};

/* POSIX guarantees that a data pointer can hold a function's address. */
#define TAKE(which, member, fallback)                                                 \
	do {                                                                          \
		void *found = wishes[which].found;                                    \
		real.member = found ? (__typeof__(real.member))(uintptr_t)found       \
		                    : (__typeof__(real.member))(uintptr_t)(fallback); \
	} while (0)

void next_symbol_resolve(void)
{
	static bool resolved;

	if (resolved)
		return;
	struct lookup wishes[WISHES] = {
	    [WISH_MALLOC] = {.name = "malloc"},
	    [WISH_FREE] = {.name = "free"},
	    [WISH_CALLOC] = {.name = "calloc"},
	    [WISH_REALLOC] = {.name = "realloc"},
	    [WISH_REALLOCARRAY] = {.name = "reallocarray"},
	    [WISH_POSIX_MEMALIGN] = {.name = "posix_memalign"},
	    [WISH_ALIGNED_ALLOC] = {.name = "aligned_alloc"},
	    [WISH_MEMALIGN] = {.name = "memalign"},
	    [WISH_VALLOC] = {.name = "valloc"},
	    [WISH_PVALLOC] = {.name = "pvalloc"},
	    [WISH_FREE_SIZED] = {.name = "free_sized"},
	    [WISH_FREE_ALIGNED_SIZED] = {.name = "free_aligned_sized"},
	    [WISH_MMAP] = {.name = "mmap"},
	    [WISH_MMAP64] = {.name = "mmap64"},
	    [WISH_MREMAP] = {.name = "mremap"},
	    [WISH_MUNMAP] = {.name = "munmap"},
	    [WISH_MPROTECT] = {.name = "mprotect"},
	    [WISH_PTHREAD_CREATE] = {.name = "pthread_create"},
	    [WISH_DLCLOSE] = {.name = "dlclose"},
	    [WISH_PRCTL] = {.name = "prctl"},
	    [WISH_SETUID] = {.name = "setuid"},
	    [WISH_SETREUID] = {.name = "setreuid"},
	    [WISH_SETRESUID] = {.name = "setresuid"},
	    [WISH_MLOCKALL] = {.name = "mlockall"},
	    [WISH_SETRLIMIT] = {.name = "setrlimit"},
	    [WISH_SETRLIMIT64] = {.name = "setrlimit64"},
	    [WISH_PRLIMIT] = {.name = "prlimit"},
	    [WISH_PRLIMIT64] = {.name = "prlimit64"},
	};
	int saved = errno;
	lookup_next(wishes, WISHES);
	/* Two threads that race here store the same pointers. */
	TAKE(WISH_FREE, free, missing_free); /* cannot happen: every libc has free */
	TAKE(WISH_MALLOC, malloc, missing_alloc);
	TAKE(WISH_CALLOC, calloc, missing_alloc);
	TAKE(WISH_REALLOC, realloc, missing_alloc);
	TAKE(WISH_REALLOCARRAY, reallocarray, plain_reallocarray);
	TAKE(WISH_POSIX_MEMALIGN, posix_memalign, missing_posix_memalign);
	TAKE(WISH_ALIGNED_ALLOC, aligned_alloc, missing_alloc);
	TAKE(WISH_MEMALIGN, memalign, missing_alloc);
	TAKE(WISH_VALLOC, valloc, missing_alloc);
	TAKE(WISH_PVALLOC, pvalloc, missing_alloc);
	TAKE(WISH_FREE_SIZED, free_sized, plain_free_sized);
	TAKE(WISH_FREE_ALIGNED_SIZED, free_aligned_sized, plain_free_aligned_sized);
	TAKE(WISH_MMAP, mmap, plain_mmap);
	TAKE(WISH_MMAP64, mmap64, plain_mmap);
	TAKE(WISH_MREMAP, mremap, plain_mremap);
	TAKE(WISH_MUNMAP, munmap, plain_munmap);
	TAKE(WISH_MPROTECT, mprotect, plain_mprotect);
	TAKE(WISH_PTHREAD_CREATE, pthread_create, missing_pthread_create);
	TAKE(WISH_DLCLOSE, dlclose, late_dlclose);
	TAKE(WISH_PRCTL, prctl, plain_prctl);
	TAKE(WISH_SETUID, setuid, missing_set_user); /* cannot happen either, for all of these */
	TAKE(WISH_SETREUID, setreuid, missing_set_user);
	TAKE(WISH_SETRESUID, setresuid, missing_set_user);
	TAKE(WISH_MLOCKALL, mlockall, plain_mlockall);
	TAKE(WISH_SETRLIMIT, setrlimit, plain_setrlimit);
	TAKE(WISH_SETRLIMIT64, setrlimit64, plain_setrlimit);
	TAKE(WISH_PRLIMIT, prlimit, plain_prlimit);
	TAKE(WISH_PRLIMIT64, prlimit64, plain_prlimit);
	own_free = (void (*)(void *))(uintptr_t)lookup_before("free");
	next_symbol_resolve_operators();
	errno = saved;
	resolved = true;
}

void next_symbol_protect(uint64_t page_bytes)
{
	if (page_bytes && REAL_ALIGNMENT % page_bytes == 0)
		memory_protect(&real, sizeof(real), PROT_READ);
}

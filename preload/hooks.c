/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooked functions: call order and forwarding, nothing else.
 *
 * Order, everywhere: a block is entered after the real function has returned it, and removed before the real
 * free is called. Otherwise another thread could get the same address in between, and we would remove its
 * entry. A realloc takes the old entry out, calls, and either drops it or puts it back if the call failed.
 *
 * malloc and free are the hot path: count and test, then jump to the real function. Nothing here changes
 * errno; what the real function stored there stays.
 */
#include "preload/block.h"
#include "preload/claim.h"
#include "preload/live.h"
#include "preload/loader_log.h"
#include "preload/lock_all.h"
#include "preload/memory_limit.h"
#include "preload/next_symbol.h"
#include "preload/sample.h"
#include "preload/sample_clock.h"
#include "preload/seccomp_filter.h"
#include "preload/slow_path.h"
#include "preload/thread.h"
#include "preload/walk.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <linux/seccomp.h>

#define EXPORT      __attribute__((visibility("default")))
#define COLD        __attribute__((noinline, cold))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Declared only by newer headers (C23), or by none. */
void free_sized(void *pointer, size_t size);
void free_aligned_sized(void *pointer, size_t alignment, size_t size);
void cfree(void *pointer);
void *memalign(size_t alignment, size_t size);
void *valloc(size_t size);
void *pvalloc(size_t size);

/* ---- malloc and free */

COLD static void *malloc_slow(size_t size)
{
	return slow_path_malloc(size, real.malloc);
}

EXPORT void *malloc(size_t size)
{
	if (UNLIKELY(sample_count(size)))
		return malloc_slow(size);
	return real.malloc(size);
}

COLD static void free_taken(void *pointer)
{
	struct live_entry entry;

	if (slow_path_take(pointer, &entry))
		block_remove(&entry);
	real.free(pointer);
}

/* Not cold: at a period of 64 KiB one free in 8 comes here. */
static __attribute__((noinline)) void free_maybe(void *pointer)
{
	if (UNLIKELY(live_maybe_here(pointer)))
		free_taken(pointer);
	else
		real.free(pointer);
}

EXPORT void free(void *pointer)
{
	if (UNLIKELY(live_maybe(pointer)))
		free_maybe(pointer);
	else
		real.free(pointer);
}

EXPORT void cfree(void *pointer)
{
	free(pointer);
}

EXPORT void free_sized(void *pointer, size_t size)
{
	if (UNLIKELY(live_maybe(pointer)))
		slow_path_free(pointer);
	real.free_sized(pointer, size);
}

EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
	if (UNLIKELY(live_maybe(pointer)))
		slow_path_free(pointer);
	real.free_aligned_sized(pointer, alignment, size);
}

/* ---- the rest of the family
 *
 * These may be built on each other inside the libc (musl's memalign calls the program's aligned_alloc;
 * glibc's reallocarray calls the program's realloc). If an interval ends in such an inner call, that is no
 * sample, and another interval begins; if none ends, the rest of it is as good as a new one. Either way the
 * outer call is a sample as often as if it had allocated nothing before.
 *
 * A call may be left by a jump: out of a signal handler, or by an allocator that gives up so. Then the flag
 * stays, and the next interval that ends takes it away, and no sample (slow_path_decide). So at most one is
 * missed, and of inner calls at most one in a call is none. */

static inline uint32_t begin_inner(void)
{
	const uint32_t outer = sample_thread.inner;

	sample_thread.inner = 1;
	return outer;
}

static inline void end_inner(uint32_t outer, const void *pointer, size_t size)
{
	sample_thread.inner = outer;
	if (pointer && UNLIKELY(sample_count(size)))
		slow_path_alloc(pointer, size);
}

EXPORT void *calloc(size_t count, size_t size)
{
	const uint32_t outer = begin_inner();
	void *pointer = real.calloc(count, size);

	end_inner(outer, pointer, count * size); /* not NULL, so the product did not overflow */
	return pointer;
}

static void *realloc_any(
    void *pointer, size_t size, void *(*next)(void *, size_t, size_t), size_t count, size_t each)
{
	struct live_entry entry;
	bool taken =
	    UNLIKELY(live_maybe(pointer)) && live_maybe_here(pointer) && slow_path_take(pointer, &entry);
	const uint32_t outer = begin_inner();
	void *moved = next(pointer, count, each);

	if (taken && (moved || size == 0))
		block_remove(&entry);
	else if (taken)
		block_restore(pointer, &entry);
	end_inner(outer, moved, size);
	return moved;
}

static void *next_realloc(void *pointer, size_t count, size_t each)
{
	return real.realloc(pointer, each);
}

EXPORT void *realloc(void *pointer, size_t size)
{
	return realloc_any(pointer, size, next_realloc, 1, size);
}

EXPORT void *reallocarray(void *pointer, size_t count, size_t each)
{
	size_t size;

	/* On overflow the libc sets the error. */
	if (__builtin_mul_overflow(count, each, &size))
		return real.reallocarray(pointer, count, each);
	return realloc_any(pointer, size, real.reallocarray, count, each);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	const uint32_t outer = begin_inner();
	int result = real.posix_memalign(out, alignment, size);

	end_inner(outer, result == 0 ? *out : NULL, size);
	return result;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	const uint32_t outer = begin_inner();
	void *pointer = real.aligned_alloc(alignment, size);

	end_inner(outer, pointer, size);
	return pointer;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	const uint32_t outer = begin_inner();
	void *pointer = real.memalign(alignment, size);

	end_inner(outer, pointer, size);
	return pointer;
}

EXPORT void *valloc(size_t size)
{
	const uint32_t outer = begin_inner();
	void *pointer = real.valloc(size);

	end_inner(outer, pointer, size);
	return pointer;
}

EXPORT void *pvalloc(size_t size)
{
	const uint32_t outer = begin_inner();
	void *pointer = real.pvalloc(size);

	end_inner(outer, pointer, size);
	return pointer;
}

/* ---- threads */

EXPORT int pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *), void *argument)
{
	/* Now, because a forked child must claim its place while it has only one thread. */
	slow_path_ready();
	/* Before there is a sampler too: a thread may run for longer than it takes until there is one. */
	if (!claim_has_region())
		return real.pthread_create(thread, attr, function, argument);
	struct thread_begin *begin = thread_creating(attr, &function, &argument);
	int result = real.pthread_create(thread, attr, function, argument);
	if (result != 0)
		thread_not_created(begin);
	return result;
}

/* ---- code that is unmapped */

EXPORT int dlclose(void *handle)
{
	if (!place_header())
		return real.dlclose(handle);
	slow_path_ready(); /* a forked child counts in a place of its own */
	sample_enter();
	const struct walk_unmapping begun = walk_unmapping(claim_is_image());
	const struct loader_log_call call = loader_log_begin(claim_state() == CLAIM_OPEN, claim_is_image());
	int result = real.dlclose(handle);
	loader_log_end(call, claim_state() == CLAIM_OPEN, claim_is_image());
	walk_unmapped(begun, claim_is_image());
	sample_leave();
	return result;
}

/* ---- dropping privileges */

EXPORT int setuid(uid_t user)
{
	int result = real.setuid(user);

	if (result == 0 && user != 0)
		claim_user_changed();
	return result;
}

EXPORT int setreuid(uid_t user, uid_t effective)
{
	int result = real.setreuid(user, effective);

	if (result == 0 && user != 0 && effective != 0)
		claim_user_changed();
	return result;
}

EXPORT int setresuid(uid_t user, uid_t effective, uid_t saved)
{
	int result = real.setresuid(user, effective, saved);

	if (result == 0 && user != 0 && effective != 0 && saved != 0)
		claim_user_changed();
	return result;
}

/* ---- memory that stays resident */

EXPORT int mlockall(int flags)
{
	return lock_all(flags, real.mlockall);
}

/* ---- limits of memory */

EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	int result = real.setrlimit((int)resource, limit);

	if (result == 0)
		memory_limit_changed((int)resource);
	return result;
}

EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	int result = real.setrlimit64((int)resource, limit);

	if (result == 0)
		memory_limit_changed((int)resource);
	return result;
}

EXPORT int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit, struct rlimit *before)
{
	int result = real.prlimit(pid, (int)resource, limit, before);

	if (result == 0 && limit)
		memory_limit_changed((int)resource);
	return result;
}

EXPORT int prlimit64(
    pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *limit, struct rlimit64 *before)
{
	int result = real.prlimit64(pid, (int)resource, limit, before);

	if (result == 0 && limit)
		memory_limit_changed((int)resource);
	return result;
}

/* ---- what a program forbids itself
 *
 * To read the time stamp counter: from then on we must not read it either. And system calls: an ordinary user
 * who forbids them, also by seccomp(2), which no hook sees, has given up new privileges by prctl before. */

EXPORT int prctl(int option, ...)
{
	unsigned long arguments[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		arguments[i] =
		    va_arg(list, unsigned long); /* whatever the registers hold if there are fewer */
	va_end(list);
	if (option == PR_SET_TSC || (option == PR_SET_SECCOMP && arguments[0] == SECCOMP_MODE_STRICT))
		sample_clock_avoid_counter();
	if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS)
		seccomp_filter_note();
	return real.prctl(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

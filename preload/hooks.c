/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooked functions: call order and forwarding, nothing else.
 *
 * Order, everywhere: a block enters the books after the real allocation has returned it and leaves them
 * before the real free gives it away. Otherwise another thread could get the same address in between, and
 * lose its entry to us. A realloc takes the old entry out, calls, and either drops it or puts it back if the
 * call failed.
 *
 * malloc and free are the hot path: count and test, then jump to the real function. Nothing here changes
 * errno; what the real function left there stays.
 *
 * Measured by bench/capture.sh (Xeon guest, two CPUs shared with a load of 12 to 18, glibc 2.36; medians of 3
 * runs, in brackets the lowest and highest), ns per unsampled malloc+free pair:
 *
 *   native 9.9 [9.6..10.3], a library that only forwards 11.1 [11.0..11.1], this one idle 11.8 [11.7..11.9],
 *   attached 12.1 [11.8..12.4]; with 8 threads 9.7, 10.6, 11.5, 11.6
 *
 * and of 16 to 256 B, a thousand of them live at a time (bench/programs/loops.c, medians of 5): forwarding
 * 19.7, attached 20.7 with no, 20.5 with a thousand, 20.7 with 100,000 and 21.3 with a million live samples;
 * 16 to 4096 B, after one sample and after a million were taken and freed: 105 and 104, forwarding 97.
 *
 * 17 instructions a pair more than forwarding (callgrind). A sampled pair, in us: copy backend 0.36; uprobe
 * 2.5, 2.8 and 3.3 for dumps of 8, 16 and 32 KiB, and 1.0 for 64 (less, presumably because the rings are full
 * and records are dropped); breakpoint 13 to 20 [7..23], too noisy to tell the dumps apart. Memory that the
 * program gains, with 256 MiB in 64 K blocks: 1.3 MB at a period of 512 KiB, 2.0 at 64 KiB, 24 at 4 KiB with
 * all 64 K blocks sampled (copy backend; 20 with the uprobe): 310 to 380 bytes a live sample.
 */
#include "preload/hooks.h"

#include "preload/capture.h"
#include "preload/live.h"
#include "preload/place.h"
#include "preload/next_symbol.h"
#include "preload/sample.h"

#include <errno.h>
#include <stdlib.h>

#define EXPORT      __attribute__((visibility("default")))
#define COLD        __attribute__((noinline, cold))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Declared by newer headers only (C23), or nowhere. */
void free_sized(void *pointer, size_t size);
void free_aligned_sized(void *pointer, size_t alignment, size_t size);
void cfree(void *pointer);
void *memalign(size_t alignment, size_t size);
void *valloc(size_t size);
void *pvalloc(size_t size);

/* The books of a block that really is a sample. */
COLD static void hooks_sampled(const void *pointer, size_t size, uint64_t period_bytes)
{
	struct live_entry entry = {
	    .size_bytes = (uint64_t)size + (size == 0),
	    .period_bytes = period_bytes,
	    .time_ns = place_now_ns(),
	    .tid = sample_thread.tid,
	};
	place_insert(pointer, &entry);
	capture_sample(&entry);
}

/* After an allocation for which sample_count said true. */
static inline void hooks_counted(const void *pointer, size_t size)
{
	if (!pointer) {
		sample_uncount(size);
		return;
	}
	uint64_t period_bytes = sample_decide(size);
	if (period_bytes)
		hooks_sampled(pointer, size, period_bytes);
}

/* ---- malloc and free */

COLD static void *malloc_slow(size_t size)
{
	void *pointer = real.malloc(size);
	hooks_counted(pointer, size);
	return pointer;
}

EXPORT void *malloc(size_t size)
{
	if (UNLIKELY(sample_count(size)))
		return malloc_slow(size);
	return real.malloc(size);
}

/* Takes a block out of the books if it is in them. */
static bool hooks_take(void *pointer, struct live_entry *entry)
{
	place_ready(); /* first: in a forked child this gives entries their new slots */
	return live_take(pointer, entry);
}

static void hooks_freed(void *pointer)
{
	struct live_entry entry;
	if (live_maybe_here(pointer) && hooks_take(pointer, &entry))
		place_remove(&entry);
}

COLD static void free_taken(void *pointer)
{
	struct live_entry entry;
	if (hooks_take(pointer, &entry))
		place_remove(&entry);
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
		hooks_freed(pointer);
	real.free_sized(pointer, size);
}

EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
	if (UNLIKELY(live_maybe(pointer)))
		hooks_freed(pointer);
	real.free_aligned_sized(pointer, alignment, size);
}

/* ---- the rest of the family
 *
 * These may be built on each other inside the libc (musl's memalign calls the program's aligned_alloc;
 * glibc's reallocarray calls the program's realloc). Parking the thread's counter keeps such an inner call
 * from being counted a second time, at the price of a store before and after. */

static inline uint64_t park(void)
{
	uint64_t left = sample_thread.left_bytes;
	sample_thread.left_bytes = SAMPLE_NEVER;
	return left;
}

static inline void unpark(uint64_t left_bytes, const void *pointer, size_t size)
{
	sample_thread.left_bytes = left_bytes;
	if (pointer && UNLIKELY(sample_count(size)))
		hooks_counted(pointer, size);
}

EXPORT void *calloc(size_t count, size_t size)
{
	uint64_t left = park();
	void *pointer = real.calloc(count, size);
	unpark(left, pointer, count * size); /* not NULL, so the product did not overflow */
	return pointer;
}

static void *realloc_any(
    void *pointer, size_t size, void *(*next)(void *, size_t, size_t), size_t count, size_t each)
{
	struct live_entry entry;
	bool taken = UNLIKELY(live_maybe(pointer)) && live_maybe_here(pointer) && hooks_take(pointer, &entry);
	uint64_t left = park();
	void *moved = next(pointer, count, each);
	if (taken && (moved || size == 0))
		place_remove(&entry);
	else if (taken)
		place_restore(pointer, &entry);
	unpark(left, moved, size);
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
	/* The overflow's error is the libc's to make. */
	if (__builtin_mul_overflow(count, each, &size))
		return real.reallocarray(pointer, count, each);
	return realloc_any(pointer, size, real.reallocarray, count, each);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	uint64_t left = park();
	int result = real.posix_memalign(out, alignment, size);
	unpark(left, result == 0 ? *out : NULL, size);
	return result;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	uint64_t left = park();
	void *pointer = real.aligned_alloc(alignment, size);
	unpark(left, pointer, size);
	return pointer;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	uint64_t left = park();
	void *pointer = real.memalign(alignment, size);
	unpark(left, pointer, size);
	return pointer;
}

EXPORT void *valloc(size_t size)
{
	uint64_t left = park();
	void *pointer = real.valloc(size);
	unpark(left, pointer, size);
	return pointer;
}

EXPORT void *pvalloc(size_t size)
{
	uint64_t left = park();
	void *pointer = real.pvalloc(size);
	unpark(left, pointer, size);
	return pointer;
}

COLD void hooks_due(const void *pointer, size_t size)
{
	hooks_counted(pointer, size);
}

/* ---- pools of the program's own */

COLD void hooks_report_alloc(const void *pointer, size_t size)
{
	/* No block of anybody's: the first page, and what the index takes for a mark of its own. */
	if ((uintptr_t)pointer >= 4096 && sample_count(size))
		hooks_counted(pointer, size);
}

COLD void hooks_report_free(void *pointer)
{
	hooks_freed(pointer);
}

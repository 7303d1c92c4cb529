/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmap, mremap, munmap and mprotect as the program calls them. Without `record --mmap` each is a test and
 * the forwarded call; and for a mapping at an address that the program gives, and for pages that it may not
 * read any more, a look whether we read a stack there.
 *
 * With it, anonymous mappings are sampled by their length, rounded up to whole pages, on the same count of
 * bytes as the heap's blocks, and every unmapping is noted, also by a mapping placed over another one. A
 * mremap that grows or moves a mapping counts, like realloc, as a free and an allocation; one that shrinks it
 * in place unmaps its tail.
 *
 * A mapping without any access is a reservation, and not in use: V8 and the JVM reserve hundreds of MiB and
 * touch few. What mprotect gives access to in a reservation counts then, as an allocation of the range by who
 * calls mprotect, and once: what was counted of the range before is freed. What mprotect takes the access
 * from is freed. Whether a page of a mapping had access before is not asked, since no system call tells it
 * without touching the page; therefore mprotect is recorded in mappings alone that began as reservations. (A
 * thread's stack is mapped by the libc, which nobody tells us when it is gone: its guards must not count.)
 * What mremap moves is taken to be in use.
 *
 * Not recorded: files; what the allocator maps for itself, whose blocks are counted already; what the libc
 * maps through internal calls (malloc's arenas, threads' stacks); and raw system calls.
 */
#include "preload/mmap.h"
#include "preload/capture.h"
#include "preload/claim.h"
#include "preload/goroutine.h"
#include "preload/lookup.h"
#include "preload/mapping.h"
#include "preload/next_symbol.h"
#include "preload/sample.h"
#include "preload/slow_path.h"
#include "preload/thread.h"

#include <stdarg.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define EXPORT    __attribute__((visibility("default")))
#define COLD      __attribute__((noinline, cold))
#define LIKELY(x) __builtin_expect(!!(x), 1)

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

enum { LARGE_BYTES = 256 << 10 };

/* 0: mappings are not recorded, which is set once that is known. Of the width of an address: see mmap. */
static uintptr_t active = 1;
static bool opened;
static uint64_t page_bytes = REGION_PAGE_BYTES;
static uintptr_t allocator_start, allocator_end;

static void open_recording(void)
{
	uint64_t bytes = getauxval(AT_PAGESZ);

	if (bytes >= REGION_PAGE_BYTES)
		page_bytes = bytes;
	/* The libc's own malloc does not call these functions; other mappings by the libc are made for the
	 * program. */
	if (!lookup_beside((const void *)(uintptr_t)real.malloc, "exit"))
		lookup_extent((const void *)(uintptr_t)real.malloc, &allocator_start, &allocator_end);
	opened = true;
}

/* Claims a forked child's place, so that mappings get their new slots before one of them is looked at. */
static bool recording(void)
{
	bool ready = slow_path_ready();

	if (ready && place_view.region.record_mmap) {
		if (!opened)
			open_recording();
		return true;
	}
	/* who offers a region is never asked for its mappings */
	active = !(ready || claim_state() == CLAIM_CLOSED || claim_state() == CLAIM_OFFERED);
	return false;
}

void mmap_open(void)
{
	active = 1;
	opened = false;
}

static uint64_t whole_pages(size_t length)
{
	return ((uint64_t)length + page_bytes - 1) & ~(page_bytes - 1);
}

static bool is_allocator(const void *caller)
{
	return (uintptr_t)caller >= allocator_start && (uintptr_t)caller < allocator_end;
}

/* A new anonymous mapping. */
static void mapped(const void *start, uint64_t bytes)
{
	if (!sample_count(bytes))
		return;
	struct live_entry entry = {.flags = SLOT_MMAP};
	sample_enter();
	if (slow_path_decide(bytes, &entry.sample)) {
		mapping_insert(start, bytes, &entry);
		capture_sample(&entry, NULL);
	}
	sample_leave();
}

/* False: it cannot be remembered. */
static bool mapped_other(const void *start, uint64_t bytes, enum mapping_kind kind)
{
	sample_enter();
	const bool remembered = mapping_insert_other(start, bytes, kind);
	sample_leave();
	return remembered;
}

/* Of a file or without access; else, and if there is no room to remember a reservation, it is in use. */
static void mapped_as(const void *start, uint64_t bytes, bool file, bool reserved)
{
	if (file)
		(void)mapped_other(start, bytes, MAPPING_FILE);
	else if (!reserved || !mapped_other(start, bytes, MAPPING_RESERVED))
		mapped(start, bytes);
}

static void unmapped(const void *start, uint64_t bytes, uint64_t before)
{
	sample_enter();
	mapping_remove(start, bytes, before);
	sample_leave();
}

/* If a call fails after it has unmapped what was in its way (older kernels), that is not noticed. */
COLD static void *record_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset,
    void *(*next)(void *, size_t, int, int, int, off_t), const void *caller)
{
	if (!recording())
		return next(address, length, protection, flags, fd, offset);
	uint64_t before = mapping_moment();
	void *start = next(address, length, protection, flags, fd, offset);
	if (start == MAP_FAILED)
		return start;
	if (flags & MAP_FIXED)
		unmapped(start, whole_pages(length), before);
	if (!(flags & MAP_ANONYMOUS) || !is_allocator(caller))
		mapped_as(start, whole_pages(length), !(flags & MAP_ANONYMOUS), protection == PROT_NONE);
	return start;
}

static void *placed(void *start, size_t length)
{
	if (start != MAP_FAILED)
		thread_mapped(start, length);
	return start;
}

static bool is_plain_memory(int protection, int flags)
{
	return flags & MAP_ANONYMOUS && protection & PROT_READ && !(flags & MAP_GROWSDOWN);
}

/* Before the call: from then on a copy must not begin below these pages and go on above them. */
COLD static void unreadable(const void *address, size_t length)
{
	sample_enter();
	if (claim_state() == CLAIM_OPEN) /* else there may be no region any more */
		thread_find_bounds();
	thread_unreadable(address, length);
	sample_leave();
	goroutine_unmapped(address, length);
}

/* One that is recorded, or to be at a certain address, or of a forked child. */
COLD static void *place_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset,
    void *(*next)(void *, size_t, int, int, int, off_t), const void *caller)
{
	if (claim_at_mapping && flags & MAP_ANONYMOUS && length >= LARGE_BYTES) {
		claim_at_mapping = 0;
		(void)slow_path_ready();
	}
	if (flags & MAP_FIXED && !(protection & PROT_READ))
		unreadable(address, length);
	else if (flags & MAP_FIXED && !is_plain_memory(protection, flags))
		goroutine_unmapped(address, length);
	void *start =
	    placed(active ? record_mmap(address, length, protection, flags, fd, offset, next, caller)
	                  : next(address, length, protection, flags, fd, offset),
	        length);
	if (flags & MAP_FIXED && is_plain_memory(protection, flags)) {
		if (start != MAP_FAILED)
			goroutine_mapped(start, length);
		else /* older kernels may have unmapped what was in the way */
			goroutine_unmapped(address, length);
	}
	return start;
}

/* The kernel's own choice is never near the main thread's stack: one test for both. */
EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (LIKELY(!(active | claim_at_mapping | (uintptr_t)address)))
		return real.mmap(address, length, protection, flags, fd, offset);
	return place_mmap(
	    address, length, protection, flags, fd, offset, real.mmap, __builtin_return_address(0));
}

EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (LIKELY(!(active | claim_at_mapping | (uintptr_t)address)))
		return real.mmap64(address, length, protection, flags, fd, offset);
	return place_mmap(
	    address, length, protection, flags, fd, offset, real.mmap64, __builtin_return_address(0));
}

COLD static int record_munmap(void *address, size_t length)
{
	goroutine_unmapped(address, length);
	if (!active || !recording())
		return real.munmap(address, length);
	uint64_t before = mapping_moment();
	int result = real.munmap(address, length);
	if (result == 0)
		unmapped(address, whole_pages(length), before);
	return result;
}

EXPORT int munmap(void *address, size_t length)
{
	if (LIKELY(!(active | goroutine_memory_known)))
		return real.munmap(address, length);
	return record_munmap(address, length);
}

COLD static void *record_mremap(void *old, size_t old_length, size_t new_length, int flags, void *new)
{
	if (!recording())
		return real.mremap(old, old_length, new_length, flags, new);
	uint64_t before = mapping_moment(), old_bytes = whole_pages(old_length),
	         new_bytes = whole_pages(new_length);
	const bool file = mapping_has(old, REGION_PAGE_BYTES, MAPPING_FILE);
	void *start = real.mremap(old, old_length, new_length, flags, new);
	if (start == MAP_FAILED)
		return start;
	if (flags & MREMAP_FIXED)
		unmapped(start, new_bytes, before);
	if (start == old && new_bytes <= old_bytes) {
		unmapped((char *)old + new_bytes, old_bytes - new_bytes, before);
		return start;
	}
	if (!(flags & MREMAP_DONTUNMAP))
		/* not if old_length is 0: that makes a second mapping of the same pages */
		unmapped(old, old_bytes, before);
	mapped_as(start, new_bytes, file, false);
	return start;
}

EXPORT void *mremap(void *old, size_t old_length, size_t new_length, int flags, ...)
{
	va_list arguments;

	va_start(arguments, flags);
	void *new = va_arg(arguments, void *); /* a register's contents if there is none */
	va_end(arguments);
	goroutine_unmapped(old, old_length);
	if (flags & MREMAP_FIXED)
		goroutine_unmapped(new, new_length);
	if (LIKELY(!active))
		return placed(real.mremap(old, old_length, new_length, flags, new), new_length);
	return placed(record_mremap(old, old_length, new_length, flags, new), new_length);
}

/* In a reservation, see above. */
static int record_mprotect(void *address, size_t length, int protection)
{
	const uint64_t bytes = whole_pages(length);

	if (!recording() || !mapping_has(address, bytes, MAPPING_RESERVED))
		return real.mprotect(address, length, protection);
	uint64_t before = mapping_moment();
	if (real.mprotect(address, length, protection) != 0)
		return -1;
	sample_enter();
	mapping_remove_samples(address, bytes, before);
	sample_leave();
	if (protection != PROT_NONE)
		mapped(address, bytes);
	return 0;
}

COLD static int protect(void *address, size_t length, int protection)
{
	if (!(protection & PROT_READ))
		unreadable(address, length);
	return active ? record_mprotect(address, length, protection)
	              : real.mprotect(address, length, protection);
}

EXPORT int mprotect(void *address, size_t length, int protection)
{
	if (LIKELY(!active && protection & PROT_READ))
		return real.mprotect(address, length, protection);
	return protect(address, length, protection);
}

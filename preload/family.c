/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks of the families: as in hooks.c, a block is entered after the call that returned it, and removed
 * before the call that frees it.
 *
 * Each hook has the name of its function, hidden, so that stacks show it as what the program called. All
 * arguments are integers; a function gets those that it does not have too.
 *
 * A function may end in the program's malloc, or in another of the family: what has been counted during the
 * call is not counted again (slow_path_after). A std::bad_alloc may pass through mi_new and tc_new: nothing
 * has been changed by then that would have to be restored.
 */
#include "preload/family.h"

#include "preload/block.h"
#include "preload/family_list.h"
#include "preload/live.h"
#include "preload/memory.h"
#include "preload/redirect.h"
#include "preload/slow_path.h"

#include <sys/auxv.h>
#include <sys/mman.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define PARAMETERS uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f
#define ARGUMENTS  a, b, c, d, e, f

typedef uintptr_t family_function(PARAMETERS);

enum { NEXT_ALIGNMENT = 4096 }; /* the table has its pages to itself, and is read-only once it is filled in */

static struct next {
	_Alignas(NEXT_ALIGNMENT) family_function *function[FAMILIES];
} next;

/* ---- what blocks are and how large */

/* Of a function that returns 0 or an error number and stores the block. */
static inline uintptr_t stored(uintptr_t result, uintptr_t out)
{
	return (int)result == 0 ? *(const uintptr_t *)out : 0;
}

static size_t text_bytes(uintptr_t text)
{
	size_t length = 0;

	while (((const volatile char *)text)[length])
		length++;
	return length + 1;
}

static size_t wide_text_bytes(uintptr_t text)
{
	size_t length = 0;

	while (((const volatile unsigned short *)text)[length])
		length++;
	return (length + 1) * sizeof(unsigned short);
}

__attribute__((noinline)) static bool take_sampled(const void *pointer, struct live_entry *entry)
{
	return live_maybe_here(pointer) && slow_path_take(pointer, entry);
}

static inline bool take(uintptr_t pointer, struct live_entry *entry)
{
	return UNLIKELY(live_maybe((const void *)pointer)) && take_sampled((const void *)pointer, entry);
}

__attribute__((noinline)) static void settle(uintptr_t old, const struct live_entry *entry, bool gone)
{
	if (gone)
		block_remove(entry);
	else
		block_restore((const void *)old, entry);
}

/* ---- the hooks that are alike */

#define HOOK_ALLOC(name, block_of, bytes_of)                                    \
	static uintptr_t hook_##name(PARAMETERS) __asm__(#name);                \
	static uintptr_t hook_##name(PARAMETERS)                                \
	{                                                                       \
		struct slow_path_mark mark = slow_path_mark();                  \
		uintptr_t result = next.function[FAMILY_##name](ARGUMENTS);     \
		uintptr_t block = (block_of);                                   \
		if (block)                                                      \
			slow_path_after(mark, (const void *)block, (bytes_of)); \
		return result;                                                  \
	}

#define HOOK_REALLOC(name, old_of, block_of, bytes_of, gone_of)                 \
	static uintptr_t hook_##name(PARAMETERS) __asm__(#name);                \
	static uintptr_t hook_##name(PARAMETERS)                                \
	{                                                                       \
		struct live_entry entry;                                        \
		uintptr_t old = (old_of);                                       \
		bool taken = take(old, &entry);                                 \
		struct slow_path_mark mark = slow_path_mark();                  \
		uintptr_t result = next.function[FAMILY_##name](ARGUMENTS);     \
		uintptr_t block = (block_of);                                   \
		if (taken)                                                      \
			settle(old, &entry, block || (gone_of));                \
		if (block)                                                      \
			slow_path_after(mark, (const void *)block, (bytes_of)); \
		return result;                                                  \
	}

#define HOOK_FREE(name)                                          \
	static uintptr_t hook_##name(PARAMETERS) __asm__(#name); \
	static uintptr_t hook_##name(PARAMETERS)                 \
	{                                                        \
		if (UNLIKELY(live_maybe((const void *)a)))       \
			slow_path_free((const void *)a);         \
		return next.function[FAMILY_##name](ARGUMENTS);  \
	}

#define HOOK_OWN(name) static uintptr_t hook_##name(PARAMETERS) __asm__(#name);
#define HOOK_NONE(name)

FAMILY_ALL(HOOK_ALLOC, HOOK_REALLOC, HOOK_FREE, HOOK_OWN, HOOK_NONE)

/* ---- jemalloc: in place
 *
 * xallocx(block, size, extra, flags) returns the bytes that the block has afterwards: fewer than size, and it
 * could not grow; more than a new block of size + extra would have, and it could not shrink. In both cases
 * it is as it was. Else it counts as a realloc that did not have to move. */
static inline uintptr_t resize(enum family self, enum family usable, PARAMETERS)
{
	struct live_entry entry;
	uintptr_t most;
	bool taken = take(a, &entry);
	struct slow_path_mark mark = slow_path_mark();
	uintptr_t result = next.function[self](ARGUMENTS);

	if (__builtin_add_overflow(b, c, &most))
		most = UINTPTR_MAX;
	bool resized = result >= b;
	if (resized && result > most && next.function[usable]) {
		uintptr_t fresh = next.function[usable](most, d, 0, 0, 0, 0);

		resized = fresh == 0 || result <= fresh;
	}
	if (taken)
		settle(a, &entry, resized);
	if (resized)
		slow_path_after(mark, (const void *)a, result < most ? result : most);
	return result;
}

#define HOOK_XALLOCX(name, usable)                                        \
	static uintptr_t hook_##name(PARAMETERS)                          \
	{                                                                 \
		return resize(FAMILY_##name, FAMILY_##usable, ARGUMENTS); \
	}
HOOK_XALLOCX(xallocx, nallocx)
HOOK_XALLOCX(je_xallocx, je_nallocx)
HOOK_XALLOCX(_rjem_xallocx, _rjem_nallocx)

/* ---- mimalloc */

/* Frees what is mimalloc's, and nothing else. */
static uintptr_t hook_mi_cfree(PARAMETERS)
{
	family_function *is_there = next.function[FAMILY_mi_is_in_heap_region];

	if (UNLIKELY(live_maybe((const void *)a)) && is_there && (bool)(is_there(a, 0, 0, 0, 0, 0) & 0xff))
		slow_path_free((const void *)a);
	return next.function[FAMILY_mi_cfree](ARGUMENTS);
}

/* May throw, so the entry must be in its place during the call. Another thread may get the old address before
 * the call returns: then the entry found there is not the old one. */
static inline uintptr_t realloc_or_throw(enum family self, size_t bytes, PARAMETERS)
{
	struct live_entry old, entry;
	bool taken = take(a, &old);

	if (taken)
		block_restore((const void *)a, &old);
	struct slow_path_mark mark = slow_path_mark();
	uintptr_t result = next.function[self](ARGUMENTS);
	if (taken && result && take(a, &entry))
		settle(a, &entry, entry.sample.seq == old.sample.seq && entry.place == old.place);
	if (result)
		slow_path_after(mark, (const void *)result, bytes);
	return result;
}

static uintptr_t hook_mi_new_realloc(PARAMETERS)
{
	return realloc_or_throw(FAMILY_mi_new_realloc, b, ARGUMENTS);
}

static uintptr_t hook_mi_new_reallocn(PARAMETERS)
{
	return realloc_or_throw(FAMILY_mi_new_reallocn, b * c, ARGUMENTS);
}

/* mi_heap_area_t begins so in every 2.x. */
struct heap_area {
	uintptr_t start;
	size_t reserved_bytes, committed_bytes;
};

/* Blocks may begin at any multiple of 8. */
static bool free_area(const void *heap, const struct heap_area *area, void *block, size_t size, void *unused)
{
	const uintptr_t span = (uintptr_t)1 << LIVE_SPAN_SHIFT;
	uintptr_t at = (area->start + 7) & ~(uintptr_t)7, end = area->start + area->committed_bytes;

	while (at < end) {
		uintptr_t stop = (at | (span - 1)) + 1;

		if (!live_maybe((const void *)at))
			at = stop;
		for (; at < stop && at < end; at += 8)
			slow_path_free((const void *)at);
	}
	return true;
}

/* Frees all that is in a heap. mimalloc refuses that for the heap that a thread begins with. */
static uintptr_t hook_mi_heap_destroy(PARAMETERS)
{
	family_function *backing = next.function[FAMILY_mi_heap_get_backing],
	                *visit = next.function[FAMILY_mi_heap_visit_blocks];

	if (a && backing && visit && backing(0, 0, 0, 0, 0, 0) != a)
		visit(a, false, (uintptr_t)free_area, 0, 0, 0);
	return next.function[FAMILY_mi_heap_destroy](ARGUMENTS);
}

/* ---- redirection */

#define HOOKED(name, ...) {#name, (uintptr_t)hook_##name, 0},
#define KEPT(name)        {#name, 0, 0},
static struct redirect functions[FAMILIES] = {FAMILY_ALL(HOOKED, HOOKED, HOOKED, HOOKED, KEPT)};

/* Where each list begins in FAMILY_ALL, and the last one's end. */
static const enum family lists[] = {
    FAMILY_mallocx, FAMILY_je_mallocx, FAMILY__rjem_mallocx, FAMILY_mi_malloc, FAMILY_tc_malloc, FAMILIES};

enum { LISTS = sizeof(lists) / sizeof(lists[0]) - 1 };

void family_redirect(void)
{
	bool any = false;

	for (int i = 0; i < LISTS; i++)
		any |= redirect_find(&functions[lists[i]], (size_t)(lists[i + 1] - lists[i]));
	if (!any)
		return;
	for (int i = 0; i < FAMILIES; i++)
		next.function[i] = (family_function *)functions[i].from;
	uint64_t page_bytes = getauxval(AT_PAGESZ);
	if (page_bytes && NEXT_ALIGNMENT % page_bytes == 0)
		memory_protect(&next, sizeof(next), PROT_READ);
	for (int i = 0; i < LISTS; i++)
		if (functions[lists[i]].from)
			redirect_apply(&functions[lists[i]], (size_t)(lists[i + 1] - lists[i]));
}

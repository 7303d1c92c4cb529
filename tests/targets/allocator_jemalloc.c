/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -ljemalloc */
/*
 * A program that calls jemalloc's own functions (allocator_main.h). -DPREFIX=je_: those of a jemalloc that
 * was configured with a prefix, which is not the program's malloc.
 */
#include "tests/targets/allocator_main.h"

#ifdef PREFIX
#define PASTE(a, b)  a##b
#define PASTED(a, b) PASTE(a, b)
#define API(name)    PASTED(PREFIX, name)
#else
#define API(name) name
#endif
#define FLAG_LG_ALIGN(bits) ((int)(bits))
#define FLAG_ZERO           0x40
#define FLAG_TCACHE_NONE    (((-1) + 2) << 8)
#define FLAG_ARENA(index)   (((int)(index) + 1) << 20)

void *API(mallocx)(size_t size, int flags);
void *API(rallocx)(void *block, size_t size, int flags);
size_t API(xallocx)(void *block, size_t size, size_t extra, int flags);
size_t API(nallocx)(size_t size, int flags);
size_t API(sallocx)(const void *block, int flags);
void API(dallocx)(void *block, int flags);
void API(sdallocx)(void *block, size_t size, int flags);
int API(mallctl)(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);
void *API(malloc)(size_t size);
void *API(calloc)(size_t count, size_t size);
void *API(realloc)(void *block, size_t size);
void *API(aligned_alloc)(size_t alignment, size_t size);
void *API(memalign)(size_t alignment, size_t size);
void *API(valloc)(size_t size);
int API(posix_memalign)(void **out, size_t alignment, size_t size);
void API(free)(void *block);

static unsigned arena_index(void)
{
	static _Atomic int made;

	if (!made) {
		unsigned index = 0;
		size_t bytes = sizeof(index);

		must(API(mallctl)("arenas.create", &index, &bytes, NULL, 0) == 0, "arenas.create");
		made = (int)index;
	}
	return (unsigned)made;
}

static void *posix_aligned(size_t size)
{
	void *block = NULL;

	return API(posix_memalign)(&block, 512, size) == 0 ? block : NULL;
}

/* clang-format off */
TAKE(mallocx, API(mallocx)(size, 0))
TAKE(mallocx_aligned, API(mallocx)(size, FLAG_LG_ALIGN(8) | FLAG_ZERO))
TAKE(mallocx_arena, API(mallocx)(size, FLAG_ARENA(arena_index()) | FLAG_TCACHE_NONE))
TAKE(malloc, API(malloc)(size))
TAKE(calloc, API(calloc)(2, size / 2))
TAKE(realloc, API(realloc)(NULL, size))
TAKE(aligned_alloc, API(aligned_alloc)(128, size))
TAKE(memalign, API(memalign)(64, size))
TAKE(valloc, API(valloc)(size))
TAKE(posix_memalign, posix_aligned(size))
RESIZE(rallocx, API(rallocx)(old, size, 0))
RESIZE(rallocx_aligned, API(rallocx)(old, size, FLAG_LG_ALIGN(10)))
RESIZE(realloc, API(realloc)(old, size))
/* clang-format on */

/* Every block may be freed by each of them. */
static void drop_any(struct block *block, long turn)
{
	size_t size = block->size;

	switch (turn % 4) {
	case 0:
		DROP(*block, API(free)(at));
		break;
	case 1:
		DROP(*block, API(dallocx)(at, 0));
		break;
	case 2:
		DROP(*block, API(dallocx)(at, FLAG_TCACHE_NONE));
		break;
	default: /* as sized deallocation wants it: of a size of the same class */
		size = API(sallocx)(block->at, 0);
		DROP(*block, API(sdallocx)(at, size, 0));
		break;
	}
}

__attribute__((noinline, noclone)) size_t resize_xallocx(void *old, size_t size, size_t extra)
{
	errno = ERRNO_BEFORE;
	size_t result = API(xallocx)(old, size, extra, 0);
	__asm__ volatile("" : "+r"(result) : : "memory");
	return result;
}

/* In place: counted as a new block of the size that it has got, or not at all. Returns whether it was. */
static int resized_in_place(struct block *block, size_t size, size_t extra)
{
	size_t before = API(sallocx)(block->at, 0), after = resize_xallocx(block->at, size, extra);

	must(errno == ERRNO_BEFORE, "errno of xallocx");
	must(after == API(sallocx)(block->at, 0), "xallocx tells the size");
	if (after < size || (after == before && before > API(nallocx)(size + extra, 0)))
		return 0;
	leave(block);
	block->row = row_of("resize_xallocx");
	block->size = after < size + extra ? after : size + extra;
	enter(block);
	return 1;
}

static void in_place(long turn)
{
	struct block small = TOOK(mallocx, 100), large = TOOK(mallocx, 300000);

	must(resized_in_place(&small, 110, 0), "within its size class");
	must(!resized_in_place(&small, 5000, 0), "a small block cannot grow");
	must(!resized_in_place(&small, 20, 0), "a small block cannot shrink");
	must(resized_in_place(&small, 105, 5000), "as much of extra as there is room for");
	must(resized_in_place(&large, 70000, 0), "a large block can shrink");
	resized_in_place(&large, 75000, 150000); /* and perhaps grow */
	if (turn % 2)
		drop_any(&small, turn / 2);
	else
		keep(small);
	drop_any(&large, turn);
}

static void work(long turn)
{
	size_t size = 1024 + (size_t)turn % 8 * 512;
	struct block blocks[] = {TOOK(mallocx, size), TOOK(mallocx_aligned, size), TOOK(mallocx_arena, size),
	    TOOK(malloc, size), TOOK(calloc, size), TOOK(realloc, size), TOOK(aligned_alloc, size),
	    TOOK(memalign, size), TOOK(valloc, size), TOOK(posix_memalign, size)};

	must((uintptr_t)blocks[1].at % 256 == 0, "alignment of mallocx");
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		long what = turn + (long)i;

		if (what % 5 == 1)
			blocks[i] = RESIZED(rallocx, blocks[i], size * 3);
		if (what % 5 == 2)
			blocks[i] = RESIZED(rallocx_aligned, blocks[i], size * 2);
		if (what % 5 == 3)
			blocks[i] = RESIZED(realloc, blocks[i], size / 2);
		if (what % 2)
			keep(blocks[i]);
		else
			drop_any(&blocks[i], what / 2);
	}
	in_place(turn);
	void *zeroed = take_mallocx_aligned(4096);
	for (size_t i = 0; i < 4096; i++)
		must(((char *)zeroed)[i] == 0, "MALLOCX_ZERO");
	struct block block = took("take_mallocx_aligned", zeroed, 4096);
	drop_any(&block, turn);
	/* What fails changes nothing. */
	block = TOOK(mallocx, size);
	must(take_mallocx((size_t)1 << 62) == NULL, "mallocx of too much");
	must(resize_rallocx(block.at, (size_t)1 << 62) == NULL, "rallocx of too much");
	keep(block);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all -lmimalloc */
/* A program that calls mimalloc's own functions (allocator_main.h), also those of its heaps. */
#include "tests/targets/allocator_main.h"

#include <mimalloc.h>

static __thread mi_heap_t *heap;

static void *posix_aligned(size_t size)
{
	void *block = NULL;

	return mi_posix_memalign(&block, 512, size) == 0 ? block : NULL;
}

static void *from_environment(void)
{
	char *text = NULL;

	return mi_dupenv_s(&text, NULL, "ALLOCATOR_TEXT") == 0 ? text : NULL;
}

static void *replaced(void *old, size_t size)
{
	return mi_reallocarr(&old, size / 2, 2) == 0 ? old : NULL;
}

static char long_text[8192];
static unsigned short wide_text[4096];

static const char *text_of(size_t size)
{
	return long_text + sizeof(long_text) - size;
}

/* clang-format off */
#define EACH_TAKE(X) \
	X(mi_malloc, mi_malloc(size)) \
	X(mi_zalloc, mi_zalloc(size)) \
	X(mi_calloc, mi_calloc(2, size / 2)) \
	X(mi_mallocn, mi_mallocn(4, size / 4)) \
	X(mi_realloc, mi_realloc(NULL, size)) \
	X(mi_malloc_aligned, mi_malloc_aligned(size, 256)) \
	X(mi_malloc_aligned_at, mi_malloc_aligned_at(size, 256, 8)) \
	X(mi_zalloc_aligned, mi_zalloc_aligned(size, 64)) \
	X(mi_zalloc_aligned_at, mi_zalloc_aligned_at(size, 64, 16)) \
	X(mi_calloc_aligned, mi_calloc_aligned(2, size / 2, 128)) \
	X(mi_calloc_aligned_at, mi_calloc_aligned_at(2, size / 2, 128, 8)) \
	X(mi_aligned_alloc, mi_aligned_alloc(64, size)) \
	X(mi_memalign, mi_memalign(2048, size)) \
	X(mi_posix_memalign, posix_aligned(size)) \
	X(mi_valloc, mi_valloc(size)) \
	X(mi_pvalloc, mi_pvalloc(size)) \
	X(mi_new, mi_new(size)) \
	X(mi_new_nothrow, mi_new_nothrow(size)) \
	X(mi_new_aligned, mi_new_aligned(size, 64)) \
	X(mi_new_aligned_nothrow, mi_new_aligned_nothrow(size, 64)) \
	X(mi_new_n, mi_new_n(size / 8, 8)) \
	X(mi_strdup, mi_strdup(text_of(size))) \
	X(mi_strndup, mi_strndup(long_text, size - 1)) \
	X(mi_mbsdup, mi_mbsdup((const unsigned char *)text_of(size))) \
	X(mi_wcsdup, mi_wcsdup(wide_text + 4096 - size / 2)) \
	X(malloc, malloc(size)) \
	X(mi_heap_malloc, mi_heap_malloc(heap, size)) \
	X(mi_heap_zalloc, mi_heap_zalloc(heap, size)) \
	X(mi_heap_calloc, mi_heap_calloc(heap, 2, size / 2)) \
	X(mi_heap_mallocn, mi_heap_mallocn(heap, 2, size / 2)) \
	X(mi_heap_malloc_aligned, mi_heap_malloc_aligned(heap, size, 256)) \
	X(mi_heap_malloc_aligned_at, mi_heap_malloc_aligned_at(heap, size, 256, 8)) \
	X(mi_heap_zalloc_aligned, mi_heap_zalloc_aligned(heap, size, 64)) \
	X(mi_heap_zalloc_aligned_at, mi_heap_zalloc_aligned_at(heap, size, 64, 8)) \
	X(mi_heap_calloc_aligned, mi_heap_calloc_aligned(heap, 2, size / 2, 64)) \
	X(mi_heap_calloc_aligned_at, mi_heap_calloc_aligned_at(heap, 2, size / 2, 64, 8)) \
	X(mi_heap_alloc_new, mi_heap_alloc_new(heap, size)) \
	X(mi_heap_alloc_new_n, mi_heap_alloc_new_n(heap, size / 8, 8)) \
	X(mi_heap_strdup, mi_heap_strdup(heap, text_of(size))) \
	X(mi_heap_strndup, mi_heap_strndup(heap, long_text, size - 1))
#define EACH_SMALL(X) \
	X(mi_malloc_small, mi_malloc_small(size)) \
	X(mi_zalloc_small, mi_zalloc_small(size)) \
	X(mi_heap_malloc_small, mi_heap_malloc_small(heap, size))
#define EACH_RESIZE(X) \
	X(mi_realloc, mi_realloc(old, size)) \
	X(mi_reallocf, mi_reallocf(old, size)) \
	X(mi_reallocn, mi_reallocn(old, size / 4, 4)) \
	X(mi_reallocarray, mi_reallocarray(old, size / 4, 4)) \
	X(mi_reallocarr, replaced(old, size)) \
	X(mi_rezalloc, mi_rezalloc(old, size)) \
	X(mi_recalloc, mi_recalloc(old, size / 4, 4)) \
	X(mi_realloc_aligned, mi_realloc_aligned(old, size, 64)) \
	X(mi_realloc_aligned_at, mi_realloc_aligned_at(old, size, 64, 8)) \
	X(mi_rezalloc_aligned, mi_rezalloc_aligned(old, size, 64)) \
	X(mi_rezalloc_aligned_at, mi_rezalloc_aligned_at(old, size, 64, 8)) \
	X(mi_recalloc_aligned, mi_recalloc_aligned(old, size / 4, 4, 64)) \
	X(mi_recalloc_aligned_at, mi_recalloc_aligned_at(old, size / 4, 4, 64, 8)) \
	X(mi_aligned_recalloc, mi_aligned_recalloc(old, size / 4, 4, 64)) \
	X(mi_aligned_offset_recalloc, mi_aligned_offset_recalloc(old, size / 4, 4, 64, 8)) \
	X(mi_new_realloc, mi_new_realloc(old, size)) \
	X(mi_new_reallocn, mi_new_reallocn(old, size / 4, 4)) \
	X(realloc, realloc(old, size)) \
	X(mi_heap_realloc, mi_heap_realloc(heap, old, size)) \
	X(mi_heap_reallocf, mi_heap_reallocf(heap, old, size)) \
	X(mi_heap_reallocn, mi_heap_reallocn(heap, old, size / 4, 4)) \
	X(mi_heap_rezalloc, mi_heap_rezalloc(heap, old, size)) \
	X(mi_heap_recalloc, mi_heap_recalloc(heap, old, size / 4, 4)) \
	X(mi_heap_realloc_aligned, mi_heap_realloc_aligned(heap, old, size, 64)) \
	X(mi_heap_realloc_aligned_at, mi_heap_realloc_aligned_at(heap, old, size, 64, 8)) \
	X(mi_heap_rezalloc_aligned, mi_heap_rezalloc_aligned(heap, old, size, 64)) \
	X(mi_heap_rezalloc_aligned_at, mi_heap_rezalloc_aligned_at(heap, old, size, 64, 8)) \
	X(mi_heap_recalloc_aligned, mi_heap_recalloc_aligned(heap, old, size / 4, 4, 64)) \
	X(mi_heap_recalloc_aligned_at, mi_heap_recalloc_aligned_at(heap, old, size / 4, 4, 64, 8))
/* clang-format on */

EACH_TAKE(TAKE)
EACH_SMALL(TAKE)
EACH_RESIZE(RESIZE)
TAKE(mi_dupenv_s, from_environment())
TAKE(mi_realpath, mi_realpath("/usr/../etc", NULL))
TAKE(mi_heap_realpath, mi_heap_realpath(heap, "/usr/../etc", NULL))
RESIZE(mi_expand, mi_expand(old, size))

#define FUNCTION_TAKE(name, call)   {"take_" #name, take_##name},
#define FUNCTION_RESIZE(name, call) {"resize_" #name, resize_##name},
static const struct {
	const char *name;
	void *(*call)(size_t size);
} takes[] = {EACH_TAKE(FUNCTION_TAKE)}, small[] = {EACH_SMALL(FUNCTION_TAKE)};
static const struct {
	const char *name;
	void *(*call)(void *old, size_t size);
} resizes[] = {EACH_RESIZE(FUNCTION_RESIZE)};

enum { TAKES = sizeof(takes) / sizeof(takes[0]), RESIZES = sizeof(resizes) / sizeof(resizes[0]) };

static void drop_any(struct block *block, long turn)
{
	if (!block->at)
		return;
	switch (turn % 5) {
	case 0:
		DROP(*block, mi_free(at));
		break;
	case 1:
		DROP(*block, free(at));
		break;
	case 2:
		DROP(*block, mi_free_size(at, block->size));
		break;
	case 3:
		DROP(*block, mi_free_aligned(at, 8));
		break;
	default:
		DROP(*block, mi_cfree(at));
		break;
	}
}

static struct block resized(struct block block, long which, size_t size)
{
	leave(&block);
	return took(resizes[which % RESIZES].name, resizes[which % RESIZES].call(block.at, size), size);
}

/* mi_realpath changes errno. */
static struct block text_took(const char *name, char *text)
{
	errno = ERRNO_BEFORE;
	return took(name, text, strlen(text) + 1);
}

static void texts(long turn)
{
	struct block blocks[] = {text_took("take_mi_dupenv_s", take_mi_dupenv_s(0)),
	    text_took("take_mi_realpath", take_mi_realpath(0)),
	    text_took("take_mi_heap_realpath", take_mi_heap_realpath(0))};

	for (int i = 0; i < 3; i++)
		drop_any(&blocks[i], turn + i);
}

static void in_place(long turn)
{
	struct block block = took("take_mi_malloc", take_mi_malloc(100), 100);

	must(resize_mi_expand(block.at, 50000) == NULL, "too large to expand");
	leave(&block);
	block = took("resize_mi_expand", resize_mi_expand(block.at, 104), 104);
	drop_any(&block, turn);
}

/* A heap that goes with all that is in it, and one that leaves it behind. */
static void heaps(long turn)
{
	heap = mi_heap_new();
	for (int i = 0; i < 40; i++) {
		struct block block =
		    took("take_mi_heap_malloc", take_mi_heap_malloc(64 << i % 12), 64 << i % 12);
		struct block aligned =
		    took("take_mi_heap_malloc_aligned", take_mi_heap_malloc_aligned(1000), 1000);

		if (i % 4 == 0)
			drop_any(&block, turn + i);
		else
			leave(&block);
		leave(&aligned);
	}
	mi_heap_destroy(heap);
	heap = mi_heap_new();
	keep(took("take_mi_heap_malloc", take_mi_heap_malloc(5000), 5000));
	mi_heap_delete(heap);
}

__attribute__((constructor)) static void write_texts(void)
{
	memset(long_text, 'x', sizeof(long_text) - 1);
	memset(wide_text, 'x', sizeof(wide_text) - 2);
	setenv("ALLOCATOR_TEXT", "0123456789abcdef", 1);
}

static void work(long turn)
{
	size_t size = 512 + (size_t)turn % 8 * 512;

	heap = mi_heap_get_default();
	for (int i = 0; i < 3; i++)
		keep(took(small[i].name, small[i].call(96), 96));
	for (long i = 0; i < TAKES; i++) {
		struct block block = took(takes[i].name, takes[i].call(size), size);

		if ((turn + i) % 3 == 1)
			block = resized(block, turn + i, (turn + i) % 2 ? size * 3 : size / 2);
		if ((turn + i) % 2)
			keep(block);
		else
			drop_any(&block, (turn + i) / 2);
	}
	texts(turn);
	in_place(turn);
	heaps(turn);
	must(take_mi_malloc((size_t)1 << 62) == NULL, "mi_malloc of too much");
	struct block block = took("take_mi_malloc", take_mi_malloc(size), size);
	must(resize_mi_realloc(block.at, (size_t)1 << 62) == NULL, "mi_realloc of too much");
	keep(block);
}

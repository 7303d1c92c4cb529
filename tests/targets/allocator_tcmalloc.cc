// SPDX-License-Identifier: Apache-2.0
/* build: -fno-builtin -fsized-deallocation -Wno-all -ltcmalloc_minimal */
// A program that calls tcmalloc's own functions (allocator_main.h), and C++'s operators.
// -DMATCHED: frees each block by the counterpart of what allocated it, as the library for debugging wants it.
#include "tests/targets/allocator_main.h"

#include <gperftools/tcmalloc.h>
#include <new>

static void *posix_aligned(size_t size)
{
	void *block = nullptr;
	return tc_posix_memalign(&block, 512, size) == 0 ? block : nullptr;
}

static const std::align_val_t wide{256};
#ifdef MATCHED
static const bool drops_matched = true;
#else
static const bool drops_matched = false;
#endif

/* clang-format off */
#define EACH_TAKE(X) \
	X(tc_malloc, tc_malloc(size)) \
	X(tc_malloc_skip_new_handler, tc_malloc_skip_new_handler(size)) \
	X(tc_calloc, tc_calloc(2, size / 2)) \
	X(tc_memalign, tc_memalign(256, size)) \
	X(tc_posix_memalign, posix_aligned(size)) \
	X(tc_valloc, tc_valloc(size)) \
	X(tc_pvalloc, tc_pvalloc(size)) \
	X(tc_realloc, tc_realloc(nullptr, size)) \
	X(malloc, malloc(size)) \
	X(tc_new, tc_new(size)) \
	X(tc_new_nothrow, tc_new_nothrow(size, std::nothrow)) \
	X(tc_newarray, tc_newarray(size)) \
	X(tc_newarray_nothrow, tc_newarray_nothrow(size, std::nothrow)) \
	X(operator_new, ::operator new(size)) \
	X(operator_new_array, ::operator new[](size))
#define EACH_ALIGNED(X) \
	X(tc_new_aligned, tc_new_aligned(size, wide)) \
	X(tc_new_aligned_nothrow, tc_new_aligned_nothrow(size, wide, std::nothrow)) \
	X(tc_newarray_aligned, tc_newarray_aligned(size, wide)) \
	X(tc_newarray_aligned_nothrow, tc_newarray_aligned_nothrow(size, wide, std::nothrow)) \
	X(operator_new_aligned, ::operator new(size, wide))
/* clang-format on */
extern "C" {
EACH_TAKE(TAKE)
EACH_ALIGNED(TAKE)
TAKE(nothing, tc_new(size)) /* the exception is a block too */
RESIZE(tc_realloc, tc_realloc(old, size))
RESIZE(realloc, realloc(old, size))
}

#define FUNCTION_TAKE(name, call) {"take_" #name, take_##name},
struct taker {
	const char *name;
	void *(*call)(size_t size);
};
static const taker takes[] = {EACH_TAKE(FUNCTION_TAKE)}, aligned[] = {EACH_ALIGNED(FUNCTION_TAKE)};

static void drop_aligned(struct block *block, long turn)
{
	size_t size = block->size;
	switch (turn % 7) {
	case 0:
		DROP(*block, tc_delete_aligned(at, wide));
		break;
	case 1:
		DROP(*block, tc_delete_sized_aligned(at, size, wide));
		break;
	case 2:
		DROP(*block, tc_delete_aligned_nothrow(at, wide, std::nothrow));
		break;
	case 3:
		DROP(*block, tc_deletearray_aligned(at, wide));
		break;
	case 4:
		DROP(*block, tc_deletearray_sized_aligned(at, size, wide));
		break;
	case 5:
		DROP(*block, tc_deletearray_aligned_nothrow(at, wide, std::nothrow));
		break;
	default:
		DROP(*block, ::operator delete(at, size, wide));
		break;
	}
}

/* As the library for debugging wants it. */
static void drop_matched(struct block *block)
{
	const char *name = block->row->name;
	if (strstr(name, "newarray") || strstr(name, "new_array"))
		DROP(*block, tc_deletearray(at));
	else if (strstr(name, "new") && !strstr(name, "malloc"))
		DROP(*block, tc_delete(at));
	else
		DROP(*block, tc_free(at));
}

static void drop_any(struct block *block, long turn)
{
	if (drops_matched)
		return drop_matched(block);
	switch (turn % 8) {
	case 0:
		DROP(*block, tc_free(at));
		break;
	case 1:
		DROP(*block, free(at));
		break;
	case 2:
		DROP(*block, tc_cfree(at));
		break;
	case 3:
		DROP(*block, tc_delete(at));
		break;
	case 4:
		DROP(*block, tc_deletearray(at));
		break;
	case 5:
		DROP(*block, tc_delete_nothrow(at, std::nothrow));
		break;
	case 6:
		DROP(*block, ::operator delete(at));
		break;
	default:
		DROP(*block, tc_deletearray_nothrow(at, std::nothrow));
		break;
	}
}

static void drop_sized(struct block *block, long turn)
{
	size_t size = block->size;
	switch (turn % 4) {
	case 0:
		DROP(*block, tc_free_sized(at, size));
		break;
	case 1:
		DROP(*block, tc_delete_sized(at, size));
		break;
	case 2:
		DROP(*block, tc_deletearray_sized(at, size));
		break;
	default:
		DROP(*block, ::operator delete(at, size));
		break;
	}
}

/* The library for debugging makes a queue of freed blocks at the first one, by operator new. */
__attribute__((constructor)) static void begin()
{
	tc_free(tc_malloc(1));
}

static void work(long turn)
{
	size_t size = 1024 + (size_t)turn % 8 * 512;
	long i = turn;
	for (const taker &taker : takes) {
		struct block block = took(taker.name, taker.call(size), size);
		bool may_resize =
		    !drops_matched || !strstr(taker.name, "new") || strstr(taker.name, "malloc");
		i++;
		if (i % 5 == 1 && may_resize)
			block = RESIZED(tc_realloc, block, size * 3);
		if (i % 5 == 2 && may_resize)
			block = RESIZED(realloc, block, size / 2);
		if (i % 2)
			keep(block);
		else
			drop_any(&block, i / 2);
	}
	for (const taker &taker : aligned) {
		if (drops_matched)
			break;
		struct block block = took(taker.name, taker.call(size), size);
		must((uintptr_t)block.at % 256 == 0, "alignment");
		drop_aligned(&block, i++);
	}
	for (int sized = 0; sized < 4 && !drops_matched; sized++) {
		struct block block = TOOK(tc_new, size);
		drop_sized(&block, sized);
	}
	struct block block = TOOK(tc_malloc, size);
	must(resize_tc_realloc(block.at, (size_t)1 << 62) == nullptr, "tc_realloc of too much");
	must(take_tc_new_nothrow((size_t)1 << 62) == nullptr, "tc_new_nothrow of too much");
	bool thrown = false;
	try {
		take_nothing((size_t)1 << 62);
	} catch (const std::bad_alloc &) {
		thrown = true;
	}
	must(thrown, "tc_new throws");
	keep(block);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that allocators have beside malloc and free, as their headers declare them: jemalloc 5.3,
 * mimalloc 2 and gperftools' tcmalloc 2. A function has up to six integer arguments, a to f; result is what
 * it returned.
 *
 *   ALLOC(name, block, bytes)             block: the new block, 0 if there is none; bytes: the size wanted
 *   REALLOC(name, old, block, bytes, gone) old: the block that it replaces; gone: old is freed even if there
 *                                         is no new one
 *   FREE(name)                            frees a
 *   OWN(name)                             has a hook that is written out in family.c
 *   KEEP(name)                            has no hook; a hook calls it
 *
 * The first of each list says whether an object has the family at all.
 */
#ifndef PRELOAD_FAMILY_LIST_H
#define PRELOAD_FAMILY_LIST_H

/* clang-format off */
#define FAMILY_JEMALLOC(ALLOC, REALLOC, FREE, OWN, KEEP) \
	ALLOC(mallocx, result, a) \
	REALLOC(rallocx, a, result, b, false) \
	FREE(dallocx) \
	FREE(sdallocx) \
	OWN(xallocx) \
	KEEP(nallocx)

/* jemalloc configured with a prefix: its malloc is not the program's. */
#define FAMILY_PREFIXED(P, ALLOC, REALLOC, FREE, OWN, KEEP) \
	ALLOC(P##mallocx, result, a) \
	REALLOC(P##rallocx, a, result, b, false) \
	FREE(P##dallocx) \
	FREE(P##sdallocx) \
	OWN(P##xallocx) \
	KEEP(P##nallocx) \
	ALLOC(P##malloc, result, a) \
	ALLOC(P##calloc, result, a * b) \
	ALLOC(P##aligned_alloc, result, b) \
	ALLOC(P##memalign, result, b) \
	ALLOC(P##posix_memalign, stored(result, a), c) \
	ALLOC(P##valloc, result, a) \
	ALLOC(P##pvalloc, result, a) \
	REALLOC(P##realloc, a, result, b, b == 0) \
	FREE(P##free) \
	FREE(P##free_sized) \
	FREE(P##free_aligned_sized)

#define FAMILY_TCMALLOC(ALLOC, REALLOC, FREE, OWN, KEEP) \
	ALLOC(tc_malloc, result, a) \
	ALLOC(tc_malloc_skip_new_handler, result, a) \
	ALLOC(tc_calloc, result, a * b) \
	ALLOC(tc_memalign, result, b) \
	ALLOC(tc_posix_memalign, stored(result, a), c) \
	ALLOC(tc_valloc, result, a) \
	ALLOC(tc_pvalloc, result, a) \
	REALLOC(tc_realloc, a, result, b, b == 0) \
	ALLOC(tc_new, result, a) \
	ALLOC(tc_new_nothrow, result, a) \
	ALLOC(tc_newarray, result, a) \
	ALLOC(tc_newarray_nothrow, result, a) \
	ALLOC(tc_new_aligned, result, a) \
	ALLOC(tc_new_aligned_nothrow, result, a) \
	ALLOC(tc_newarray_aligned, result, a) \
	ALLOC(tc_newarray_aligned_nothrow, result, a) \
	FREE(tc_free) \
	FREE(tc_free_sized) \
	FREE(tc_cfree) \
	FREE(tc_delete) \
	FREE(tc_delete_sized) \
	FREE(tc_delete_nothrow) \
	FREE(tc_deletearray) \
	FREE(tc_deletearray_sized) \
	FREE(tc_deletearray_nothrow) \
	FREE(tc_delete_aligned) \
	FREE(tc_delete_sized_aligned) \
	FREE(tc_delete_aligned_nothrow) \
	FREE(tc_deletearray_aligned) \
	FREE(tc_deletearray_sized_aligned) \
	FREE(tc_deletearray_aligned_nothrow)

#define FAMILY_MIMALLOC_ALLOC(ALLOC) \
	ALLOC(mi_malloc, result, a) \
	ALLOC(mi_zalloc, result, a) \
	ALLOC(mi_malloc_small, result, a) \
	ALLOC(mi_zalloc_small, result, a) \
	ALLOC(mi_calloc, result, a * b) \
	ALLOC(mi_mallocn, result, a * b) \
	ALLOC(mi_malloc_aligned, result, a) \
	ALLOC(mi_malloc_aligned_at, result, a) \
	ALLOC(mi_zalloc_aligned, result, a) \
	ALLOC(mi_zalloc_aligned_at, result, a) \
	ALLOC(mi_calloc_aligned, result, a * b) \
	ALLOC(mi_calloc_aligned_at, result, a * b) \
	ALLOC(mi_aligned_alloc, result, b) \
	ALLOC(mi_memalign, result, b) \
	ALLOC(mi_posix_memalign, stored(result, a), c) \
	ALLOC(mi_valloc, result, a) \
	ALLOC(mi_pvalloc, result, a) \
	ALLOC(mi_new, result, a) \
	ALLOC(mi_new_nothrow, result, a) \
	ALLOC(mi_new_aligned, result, a) \
	ALLOC(mi_new_aligned_nothrow, result, a) \
	ALLOC(mi_new_n, result, a * b) \
	ALLOC(mi_strdup, result, text_bytes(block)) \
	ALLOC(mi_strndup, result, text_bytes(block)) \
	ALLOC(mi_mbsdup, result, text_bytes(block)) \
	ALLOC(mi_wcsdup, result, wide_text_bytes(block)) \
	ALLOC(mi_realpath, b ? 0 : result, text_bytes(block)) \
	ALLOC(mi_dupenv_s, stored(result, a), text_bytes(block)) \
	ALLOC(mi_heap_malloc, result, b) \
	ALLOC(mi_heap_zalloc, result, b) \
	ALLOC(mi_heap_malloc_small, result, b) \
	ALLOC(mi_heap_calloc, result, b * c) \
	ALLOC(mi_heap_mallocn, result, b * c) \
	ALLOC(mi_heap_malloc_aligned, result, b) \
	ALLOC(mi_heap_malloc_aligned_at, result, b) \
	ALLOC(mi_heap_zalloc_aligned, result, b) \
	ALLOC(mi_heap_zalloc_aligned_at, result, b) \
	ALLOC(mi_heap_calloc_aligned, result, b * c) \
	ALLOC(mi_heap_calloc_aligned_at, result, b * c) \
	ALLOC(mi_heap_alloc_new, result, b) \
	ALLOC(mi_heap_alloc_new_n, result, b * c) \
	ALLOC(mi_heap_strdup, result, text_bytes(block)) \
	ALLOC(mi_heap_strndup, result, text_bytes(block)) \
	ALLOC(mi_heap_realpath, c ? 0 : result, text_bytes(block))

#define FAMILY_MIMALLOC_REALLOC(REALLOC) \
	REALLOC(mi_realloc, a, result, b, false) \
	REALLOC(mi_reallocf, a, result, b, true) \
	REALLOC(mi_rezalloc, a, result, b, false) \
	REALLOC(mi_expand, a, result, b, false) \
	REALLOC(mi__expand, a, result, b, false) \
	REALLOC(mi_reallocn, a, result, b * c, false) \
	REALLOC(mi_reallocarray, a, result, b * c, false) \
	REALLOC(mi_reallocarr, a ? *(uintptr_t *)a : 0, a ? stored(result, a) : 0, b * c, false) \
	REALLOC(mi_recalloc, a, result, b * c, false) \
	REALLOC(mi_realloc_aligned, a, result, b, false) \
	REALLOC(mi_realloc_aligned_at, a, result, b, false) \
	REALLOC(mi_rezalloc_aligned, a, result, b, false) \
	REALLOC(mi_rezalloc_aligned_at, a, result, b, false) \
	REALLOC(mi_recalloc_aligned, a, result, b * c, false) \
	REALLOC(mi_recalloc_aligned_at, a, result, b * c, false) \
	REALLOC(mi_aligned_recalloc, a, result, b * c, false) \
	REALLOC(mi_aligned_offset_recalloc, a, result, b * c, false) \
	REALLOC(mi_heap_realloc, b, result, c, false) \
	REALLOC(mi_heap_reallocf, b, result, c, true) \
	REALLOC(mi_heap_rezalloc, b, result, c, false) \
	REALLOC(mi_heap_reallocn, b, result, c * d, false) \
	REALLOC(mi_heap_recalloc, b, result, c * d, false) \
	REALLOC(mi_heap_realloc_aligned, b, result, c, false) \
	REALLOC(mi_heap_realloc_aligned_at, b, result, c, false) \
	REALLOC(mi_heap_rezalloc_aligned, b, result, c, false) \
	REALLOC(mi_heap_rezalloc_aligned_at, b, result, c, false) \
	REALLOC(mi_heap_recalloc_aligned, b, result, c * d, false) \
	REALLOC(mi_heap_recalloc_aligned_at, b, result, c * d, false)

#define FAMILY_MIMALLOC(ALLOC, REALLOC, FREE, OWN, KEEP) \
	FAMILY_MIMALLOC_ALLOC(ALLOC) \
	FAMILY_MIMALLOC_REALLOC(REALLOC) \
	FREE(mi_free) \
	FREE(mi_free_size) \
	FREE(mi_free_aligned) \
	FREE(mi_free_size_aligned) \
	OWN(mi_cfree) \
	OWN(mi_new_realloc) \
	OWN(mi_new_reallocn) \
	OWN(mi_heap_destroy) \
	KEEP(mi_is_in_heap_region) \
	KEEP(mi_heap_get_backing) \
	KEEP(mi_heap_visit_blocks)

#define FAMILY_ALL(ALLOC, REALLOC, FREE, OWN, KEEP) \
	FAMILY_JEMALLOC(ALLOC, REALLOC, FREE, OWN, KEEP) \
	FAMILY_PREFIXED(je_, ALLOC, REALLOC, FREE, OWN, KEEP) \
	FAMILY_PREFIXED(_rjem_, ALLOC, REALLOC, FREE, OWN, KEEP) \
	FAMILY_MIMALLOC(ALLOC, REALLOC, FREE, OWN, KEEP) \
	FAMILY_TCMALLOC(ALLOC, REALLOC, FREE, OWN, KEEP)

#define FAMILY_NUMBER(name, ...) FAMILY_##name,
enum family {
	FAMILY_ALL(FAMILY_NUMBER, FAMILY_NUMBER, FAMILY_NUMBER, FAMILY_NUMBER, FAMILY_NUMBER)
	FAMILIES
};
/* clang-format on */

#endif

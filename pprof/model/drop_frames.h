/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop_frames of a heap profile: the allocator's own functions. A reader removes them from the leaf end of
 * stacks, with everything that they call.
 *
 * RE2 syntax, so no lookaround. google/pprof anchors it as ^(...)$ and matches the name up to its first "(",
 * but with template arguments, hence the (<.*>)?. Only google/pprof applies it; for every other viewer the
 * frames have to be removed before writing. Tried with go tool pprof 1.19 and a 2026 pprof on 25 allocator
 * names (cut) and 10 names of users' functions that look alike (kept).
 */
#ifndef PPROF_MODEL_DROP_FRAMES_H
#define PPROF_MODEL_DROP_FRAMES_H

/* clang-format off */
#define DROP_FRAMES_HEAP \
	/* C, with the prefixes of allocators and interceptors */ \
	"(__libc_|__GI_|__interceptor_|tc_|je_|_rjem_|mi_)?" \
	"(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|valloc|pvalloc|"  \
	"free|cfree)" \
	"(_usable_size)?" \
	"|(mi|je|_rjem|tc)_[a-z_]*(alloc|realloc|allocx|new|memalign)[a-z_]*" \
	"|[mrx]allocx|mi__?expand" \
	/* C++ and the allocators below std's containers */ \
	"|operator (new|delete)(\\[\\])?" \
	"|(tcmalloc|mimalloc)::.*" \
	"|std::__new_allocator(<.*>)?::(de)?allocate" \
	"|__gnu_cxx::new_allocator(<.*>)?::(de)?allocate" \
	"|std::(__1::)?allocator(<.*>)?::(de)?allocate" \
	"|std::(__1::)?allocator_traits(<.*>)?::(de)?allocate" \
	"|std::__allocate_guarded(<.*>)?" \
	"|std::__1::__libcpp_(de)?allocate(<.*>)?" \
	"|std::_Vector_base(<.*>)?::_M_allocate" \
	"|_M_allocate" \
	/* Rust */ \
	"|__rust_(alloc|alloc_zeroed|realloc|dealloc)" \
	"|__r(dl|g)_(alloc|alloc_zeroed|realloc|dealloc)" \
	"|alloc::alloc::.*" \
	"|<alloc::alloc::Global as core::alloc::Allocator>::.*" \
	"|alloc::raw_vec::.*"
/* clang-format on */

#endif

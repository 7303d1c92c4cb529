/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing words that nobody but this process changes.
 *
 * A sampled block and its free change some thirty such words, and each atomic change locks the cache line for
 * 5 to 8 ns: most of what such a pair costs. While the process has one thread, the same instruction without
 * the lock does: a signal handler comes before it or behind it, and who reads the word in another process
 * sees it whole.
 *
 * How many threads there are is known to the C library, which leaves out its own locks on that condition
 * (__libc_single_threaded, glibc 2.32); so a thread made past the library, by a raw clone, breaks nothing
 * here that it does not break in malloc. Where nobody tells, there are always several.
 *
 * Not for words that forked children, or the sampler, change too.
 */
#ifndef PRELOAD_ONE_THREAD_H
#define PRELOAD_ONE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Finds the C library's word. */
void one_thread_open(void);

extern const volatile char *one_thread_word __attribute__((visibility("hidden")));

#if defined(__x86_64__)
static inline bool one_thread(void)
{
	return *one_thread_word != 0;
}

/* Of any size up to 8 bytes: `more` has the type of *word. */
#define ONE_THREAD_CHANGE(instruction, word, more) \
	__asm__ volatile(instruction " %1, %0" : "+m"(*(word)) : "r"(more) : "memory", "cc")

static inline uint64_t one_thread_fetch_add(_Atomic uint64_t *word, uint64_t more)
{
	if (!one_thread())
		return atomic_fetch_add_explicit(word, more, memory_order_release);
	__asm__ volatile("xadd %0, %1" : "+r"(more), "+m"(*word) : : "memory", "cc");
	return more;
}

/* As atomic_compare_exchange_strong; `type` is that of the word. */
#define ONE_THREAD_EXCHANGE(name, type)                                          \
	static inline bool name(_Atomic type *word, type *old, type fresh)       \
	{                                                                        \
		bool same;                                                       \
		if (!one_thread())                                               \
			return atomic_compare_exchange_strong(word, old, fresh); \
		__asm__ volatile("cmpxchg %3, %1"                                \
		                 : "+a"(*old), "+m"(*word), "=@ccz"(same)        \
		                 : "r"(fresh)                                    \
		                 : "memory");                                    \
		return same;                                                     \
	}
#else
static inline bool one_thread(void)
{
	return false;
}

#define ONE_THREAD_CHANGE(instruction, word, more) (void)(more)

static inline uint64_t one_thread_fetch_add(_Atomic uint64_t *word, uint64_t more)
{
	return atomic_fetch_add_explicit(word, more, memory_order_release);
}

#define ONE_THREAD_EXCHANGE(name, type)                                    \
	static inline bool name(_Atomic type *word, type *old, type fresh) \
	{                                                                  \
		return atomic_compare_exchange_strong(word, old, fresh);   \
	}
#endif

ONE_THREAD_EXCHANGE(one_thread_exchange8, uint8_t)
ONE_THREAD_EXCHANGE(one_thread_exchange64, uint64_t)

static inline void one_thread_add(_Atomic uint64_t *word, uint64_t more)
{
	if (one_thread())
		ONE_THREAD_CHANGE("add", word, more);
	else
		atomic_fetch_add_explicit(word, more, memory_order_release);
}

static inline void one_thread_add32(_Atomic uint32_t *word, uint32_t more)
{
	if (one_thread())
		ONE_THREAD_CHANGE("add", word, more);
	else
		atomic_fetch_add_explicit(word, more, memory_order_release);
}

#endif

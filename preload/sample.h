/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Should this allocation be sampled? Each thread counts bytes down over an interval drawn from the
 * exponential distribution; the allocation in which the interval ends is the sample (mathematics:
 * proto/weight.h).
 *
 * The state is plain data in static TLS: no constructor, no destructor, valid from a thread's first
 * instruction to its last. A new thread starts with zero bytes left and therefore takes the slow path with
 * its first allocation. There the first interval is drawn, and the allocation is sampled only if that
 * interval ends in it: sampling every thread's first allocation would be a bias.
 *
 * Where the period changes each thread comes to the slow path once, though its interval has not ended
 * (region_set_period); it is told so by what it has counted.
 */
#ifndef PRELOAD_SAMPLE_H
#define PRELOAD_SAMPLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample_thread {
	uint64_t left_bytes;   /* of the current interval */
	uintptr_t extra_at;    /* where sample_extra() is, from sample_no_extra on */
	uint64_t period_bytes; /* of the current interval; 0: none drawn yet */
	uint64_t random;       /* state of the thread's generator */
	uintptr_t stack_low;   /* bounds within which the thread's own stack may be read; 0 unknown */
	uintptr_t stack_top;
	uint32_t tid;    /* 0 unknown */
	uint32_t inner;  /* not 0: in a function of the family, whose own calls are no samples (hooks.c) */
	uint32_t inside; /* how deep the thread is in code that uses the region or the tables of live.h */
};
_Static_assert(sizeof(struct sample_thread) <= 64, "static TLS is scarce: dlopen'd libraries share it");

extern __thread struct sample_thread sample_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Of a thread that has no region's period to watch. All of a thread's state is zero in the beginning: code
 * that runs before the loader has initialized thread-local storage (the resolver of an IFUNC) may allocate
 * too. */
extern const _Atomic uint64_t sample_no_extra __attribute__((visibility("hidden")));

/* What is counted with each allocation: 0 or REGION_EXTRA_BYTES. In a region's header, or sample_no_extra. */
static inline const _Atomic uint64_t *sample_extra(void)
{
	return (const _Atomic uint64_t *)((uintptr_t)&sample_no_extra + sample_thread.extra_at);
}

static inline void sample_watch(const _Atomic uint64_t *extra)
{
	sample_thread.extra_at = (uintptr_t)extra - (uintptr_t)&sample_no_extra;
}

/* Around all that uses the region, or memory of live.h: what a signal handler does meanwhile must not unmap
 * these (memory_limit.h). Where a handler leaves by longjmp the thread stays inside: nothing is unmapped. */
static inline void sample_enter(void)
{
	sample_thread.inside++;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void sample_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	sample_thread.inside--;
}

/* What a thread counts down from when there is nothing to sample: 2^63 bytes are never allocated. */
#define SAMPLE_NEVER (1ull << 63)

/* Counts an allocation of `size` bytes (0 counts as 1). True: the interval ended or was never begun, or the
 * period has changed; go to the slow path. One subtraction and one branch on its borrow, right for any
 * size_t that an allocation can have. */
static inline bool sample_count(size_t size)
{
	const uint64_t counted =
	    (uint64_t)size + (size == 0) + atomic_load_explicit(sample_extra(), memory_order_relaxed);
#if defined(__x86_64__)
	bool ended; /* gcc makes three instructions of it */
	__asm__("subq %2, %1" : "=@ccc"(ended), "+m"(sample_thread.left_bytes) : "r"(counted));
	return ended;
#else
	return __builtin_sub_overflow(sample_thread.left_bytes, counted, &sample_thread.left_bytes);
#endif
}

/* The thread has no interval any more. It comes to the slow path with its next allocation, or never. */
void sample_stop(bool never);

/* The slow path, after sample_count returned true: decides whether the allocation is a sample. If so, returns
 * the period that the interval was drawn with, and draws the next one with period_bytes; else returns 0.
 * `off`: intervals go on, but nothing is sampled. The thread's id must be known by then
 * (thread_first_event). */
uint64_t sample_decide(size_t size, uint64_t period_bytes, bool off);

/* When the region is opened: seed from the kernel's random bytes. */
void sample_seed(const unsigned char random[16]);

/* In a forked child: makes its random numbers differ from the parent's. */
void sample_reseed(uint32_t tid, uint64_t now_ns);

/* The same, and a new interval: without it a thousand children of one server would all take their first
 * sample in the same allocation. The exponential distribution is memoryless, so the rest of an interval may
 * be drawn again. */
void sample_forked(uint32_t tid, uint64_t now_ns);

#endif

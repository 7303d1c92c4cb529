/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/weigh.h"

#include "proto/weight.h"

/* The compiler may move arithmetic across what it does not depend on. So what is computed with comes out of
 * HOLD after float_begin(), and what has been computed goes into it before float_end(): these stay in order.
 */
#define HOLD(value) __asm__ volatile("" : "+r"(value))

/* On x86-64 doubles are computed by the SSE unit; the x87's environment is not touched. A signal handler that
 * interrupts this is given an environment of its own by the kernel there. On aarch64 it finds ours, for these
 * few instructions. */
#if defined(__x86_64__)

struct float_saved {
	uint32_t mxcsr;
};

static inline struct float_saved float_begin(void)
{
	const uint32_t usual = 0x1f80; /* all exceptions masked, to nearest, no flag raised */
	struct float_saved saved;

	__asm__ volatile("stmxcsr %0" : "=m"(saved.mxcsr));
	__asm__ volatile("ldmxcsr %0" : : "m"(usual));
	return saved;
}

static inline void float_end(struct float_saved saved)
{
	__asm__ volatile("ldmxcsr %0" : : "m"(saved.mxcsr));
}

#elif defined(__aarch64__)

struct float_saved {
	uint64_t control, status;
};

static inline struct float_saved float_begin(void)
{
	struct float_saved saved;

	__asm__ volatile("mrs %0, fpcr" : "=r"(saved.control));
	__asm__ volatile("mrs %0, fpsr" : "=r"(saved.status));
	__asm__ volatile("msr fpcr, xzr"); /* no exception traps, to nearest */
	return saved;
}

static inline void float_end(struct float_saved saved)
{
	__asm__ volatile("msr fpsr, %0" : : "r"(saved.status));
	__asm__ volatile("msr fpcr, %0" : : "r"(saved.control));
}

#else
#error "heaptap knows x86-64 and aarch64"
#endif

struct weighed weigh(uint64_t size_bytes, uint64_t left_bytes, uint64_t period_bytes)
{
	const struct float_saved saved = float_begin();

	HOLD(size_bytes);
	HOLD(left_bytes);
	HOLD(period_bytes);
	const struct weight weight = weight_of_part(size_bytes, left_bytes, period_bytes);
	uint64_t bytes_q8 = weight.bytes_q8, objects_q16 = weight.objects_q16,
	         variance = weight_fixed_bytes(weight.bytes_variance);
	uint32_t large = weight_is_large(weight.bytes_variance);
	HOLD(bytes_q8);
	HOLD(objects_q16);
	HOLD(variance);
	HOLD(large);
	float_end(saved);
	return (struct weighed){bytes_q8, objects_q16, variance, large != 0};
}

uint64_t weigh_interval(uint64_t random, uint64_t period_bytes)
{
	const struct float_saved saved = float_begin();

	HOLD(random);
	HOLD(period_bytes);
	uint64_t interval = weight_interval(random, period_bytes);
	HOLD(interval);
	float_end(saved);
	return interval;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/sample.h"

#include "preload/weigh.h"
#include "proto/region.h"
#include "proto/weight.h"

#include <stdatomic.h>
#include <string.h>

const _Atomic uint64_t sample_no_extra;
__thread struct sample_thread sample_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

static uint64_t process_seed[2];
static _Atomic uint64_t threads_seeded;

/* splitmix64 (Steele, Lea, Flood 2014): every state is valid; one addition and a mix per draw. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint64_t draw(void)
{
	sample_thread.random += 0x9e3779b97f4a7c15ull;
	return mix(sample_thread.random);
}

static void seed_thread(void)
{
	uint64_t number = atomic_fetch_add_explicit(&threads_seeded, 1, memory_order_relaxed);

	sample_thread.random = mix(process_seed[0] + mix(process_seed[1] + number)) + sample_thread.tid;
}

void sample_seed(const unsigned char random[16])
{
	__builtin_memcpy(process_seed, random, sizeof(process_seed));
}

void sample_reseed(uint32_t tid, uint64_t now_ns)
{
	/* The parent has the same AT_RANDOM, so the child's seed also takes its thread id and the time. */
	process_seed[0] = mix(process_seed[0] ^ now_ns);
	process_seed[1] = mix(process_seed[1] + tid);
	sample_thread.tid = tid;
	seed_thread();
}

void sample_forked(uint32_t tid, uint64_t now_ns)
{
	if (!sample_thread.period_bytes)
		return;
	sample_reseed(tid, now_ns);
	sample_thread.left_bytes = weigh_interval(draw(), sample_thread.period_bytes);
}

void sample_stop(bool never)
{
	sample_thread.left_bytes = never ? SAMPLE_NEVER : 0;
	sample_thread.period_bytes = 0;
	sample_watch(&sample_no_extra);
}

/* No interval is so long: the largest draw is 36.7 periods (weight_interval). */
#define INTERVAL_MAX (64 * WEIGHT_PERIOD_MAX)

/* What was left before an allocation that came by because the period has changed; or, because there is none
 * or it was drawn with another period, a new interval. */
static uint64_t interval_of(uint64_t left_bytes, uint64_t period_bytes)
{
	struct sample_thread *self = &sample_thread;

	if (self->period_bytes == period_bytes && left_bytes <= INTERVAL_MAX)
		return left_bytes;
	if (!self->period_bytes)
		seed_thread();
	self->period_bytes = period_bytes;
	return weigh_interval(draw(), period_bytes);
}

uint64_t sample_decide(size_t size, uint64_t period_bytes, bool off)
{
	struct sample_thread *self = &sample_thread;

	if (period_bytes < 1 || period_bytes > WEIGHT_PERIOD_MAX)
		period_bytes = 1;
	const uint64_t counted = (uint64_t)size + (size == 0), left = self->left_bytes + counted;
	/* else it has ended in this allocation: nothing was counted but the allocation */
	if (!self->period_bytes || left > INTERVAL_MAX) {
		const uint64_t interval = interval_of(left + REGION_EXTRA_BYTES, period_bytes);

		if (interval >= counted) {
			self->left_bytes = interval - counted;
			return 0;
		}
	}
	const uint64_t drawn_with = self->period_bytes;
	/* The next interval starts behind the block: a block is sampled once, however many intervals end in
	 * it, and the exponential distribution is memoryless. */
	self->period_bytes = period_bytes;
	self->left_bytes = weigh_interval(draw(), period_bytes);
	return off ? 0 : drawn_with;
}

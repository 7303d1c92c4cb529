/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/sample.h"

#include "preload/place.h"
#include "preload/request.h"
#include "preload/thread.h"
#include "proto/weight.h"

#include <stdatomic.h>
#include <string.h>

__thread struct sample_thread sample_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

static uint64_t process_seed[2];
static _Atomic uint64_t threads_seeded;

/* splitmix64 (Steele, Lea, Flood 2014): every state is good, one addition and a mix per draw. */
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
	sample_thread.random = mix(process_seed[0] + mix(process_seed[1] + number)) + thread_tid();
}

void sample_seed(const unsigned char random[16])
{
	__builtin_memcpy(process_seed, random, sizeof(process_seed));
}

void sample_reseed(void)
{
	/* AT_RANDOM is the parent's too, so its thread id and the time make the child's. */
	process_seed[0] = mix(process_seed[0] ^ place_now_ns());
	process_seed[1] = mix(process_seed[1] + thread_tid());
	seed_thread();
	sample_thread.tid = thread_tid();
}

void sample_forked(void)
{
	if (!sample_thread.period_bytes)
		return;
	sample_reseed();
	sample_thread.left_bytes = weight_interval(draw(), sample_thread.period_bytes);
}

uint64_t sample_decide(size_t size)
{
	struct sample_thread *self = &sample_thread;
	if (!place_ready()) {
		/* Before the constructor, keep asking; when there is no session, never again. */
		self->left_bytes = place_closed() ? SAMPLE_NEVER : 0;
		return 0;
	}
	struct region_header *header = place_header();
	uint64_t now = atomic_load_explicit(&header->period_bytes, memory_order_relaxed);
	if (now < 1 || now > WEIGHT_PERIOD_MAX)
		now = 1;
	uint64_t counted = (uint64_t)size + (size == 0), drawn_with = self->period_bytes;
	if (!drawn_with) {
		thread_begin();
		seed_thread();
		self->period_bytes = now;
		uint64_t interval = weight_interval(draw(), now);
		if (interval >= counted) {
			self->left_bytes = interval - counted;
			return 0;
		}
		drawn_with = now;
	}
	/* The rest of the block needs no second look: a block is sampled once, whatever number of intervals
	 * end in it, and the exponential distribution has no memory. */
	self->period_bytes = now;
	self->left_bytes = weight_interval(draw(), now);
	if (atomic_load_explicit(&header->mode, memory_order_relaxed) == REGION_MODE_OFF || request_paused())
		return 0;
	return drawn_with;
}

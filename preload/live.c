/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/live.h"

#include "preload/one_thread.h"
#include "preload/sample.h"

#include <stdatomic.h>

enum {
	BUCKET_KEYS = 8,
	WINDOW_BUCKETS = 4,
	WINDOWS_FAR = 2,
	PAGE_SHIFT = 12,    /* of what are neighbours, whatever the kernel's pages are */
	PAGE_KEY_SHIFT = 4, /* a page has a key for every 16 bytes */
	KEY_EMPTY = 0,
	KEY_BUSY = 1,
	FILTER_STUCK = 255, /* the count is saturated: it is never lowered again */

	WINDOW = 4096, /* positions of a filter for 64 KiB of addresses */

	/* of the numbers of keys, of which half may be used */
	FIRST_BITS_MOST = 13,
	FIRST_BITS_LEAST = 11,
	SECOND_BITS = 17,
	LAST_BITS_MOST = 21,

	SPANS_OF_KEY_BITS = 7, /* so many spans for a key of the first level: 8 GiB of addresses at most */
	FILTER_OF_KEY_BITS = 4,
	SECOND_FILTER_BITS = SECOND_BITS + FILTER_OF_KEY_BITS,

	READY_SHIFT = 8,
	OPEN_MASK = (1 << READY_SHIFT) - 1,
};

#define HEAP_BYTES (UINT64_C(32) << 30) /* whose samples have room */

struct level {
	uint8_t *filter; /* and confirm after it */
	_Atomic uint64_t *keys;
	struct live_entry *entries;
	uint32_t filter_bits;
	uint32_t key_bits;
	_Atomic uint64_t used;
};

static const uintptr_t no_spans[2];
const struct live_spans *live_spans = (const struct live_spans *)no_spans;

static struct level levels[LIVE_LEVELS];
/* How many are in use and, above READY_SHIFT, how many have memory. One word: a level whose memory is given
 * back cannot be taken into use at the same moment. */
static _Atomic uint32_t levels_word;
static uint32_t levels_at_first; /* whose memory live_open was given */

static uint32_t levels_open(void)
{
	return atomic_load(&levels_word) & OPEN_MASK;
}

static size_t filter_bytes(uint32_t key_bits)
{
	return ((size_t)1 << (key_bits + FILTER_OF_KEY_BITS)) + WINDOW;
}

static size_t level_bytes(uint32_t key_bits)
{
	return ((size_t)1 << key_bits) * (sizeof(uint64_t) + sizeof(struct live_entry)) +
	    2 * filter_bytes(key_bits);
}

static uint32_t key_bits_of(const struct live_size *size, uint32_t level)
{
	return level == 0 ? size->first_bits : level == 1 ? SECOND_BITS : size->last_bits;
}

/* In front of the counts is the mask, and what aligns the level behind them. */
static size_t spans_bytes(const struct live_size *size)
{
	return 64 + ((size_t)1 << (size->first_bits + SPANS_OF_KEY_BITS));
}

struct live_size live_size_for(uint64_t period_bytes)
{
	struct live_size size = {LIVE_LEVELS, FIRST_BITS_MOST, LAST_BITS_MOST};

	while (size.last_bits > SECOND_BITS && (period_bytes << size.last_bits) / 4 >= HEAP_BYTES)
		size.last_bits--;
	if (size.last_bits == SECOND_BITS)
		size.levels--;
	return size;
}

bool live_size_lower(struct live_size *size)
{
	if (size->levels > 1)
		size->levels--;
	else if (size->first_bits > FIRST_BITS_LEAST)
		size->first_bits--;
	else
		return false;
	return true;
}

uint32_t live_size_samples(const struct live_size *size)
{
	uint32_t samples = 0;

	for (uint32_t i = 0; i < size->levels; i++)
		samples += 1u << (key_bits_of(size, i) - 1);
	return samples;
}

size_t live_first_bytes(const struct live_size *size)
{
	return spans_bytes(size) + level_bytes(size->first_bits);
}

size_t live_above_bytes(const struct live_size *size)
{
	size_t bytes = 0;

	for (uint32_t i = 1; i < size->levels; i++)
		bytes += level_bytes(key_bits_of(size, i));
	return bytes;
}

static void level_open(struct level *level, uint32_t key_bits, unsigned char *memory)
{
	const size_t keys = (size_t)1 << key_bits;

	level->keys = (_Atomic uint64_t *)(void *)memory;
	level->entries = (struct live_entry *)(void *)(memory + keys * sizeof(uint64_t));
	level->filter = memory + keys * (sizeof(uint64_t) + sizeof(struct live_entry));
	level->filter_bits = key_bits + FILTER_OF_KEY_BITS;
	level->key_bits = key_bits;
	atomic_store(&level->used, 0);
}

void live_open(const struct live_size *size, void *first, void *above)
{
	struct live_spans *spans = first;
	unsigned char *at = above;

	spans->mask = ((uintptr_t)1 << (size->first_bits + SPANS_OF_KEY_BITS)) - 1;
	level_open(&levels[0], size->first_bits, (unsigned char *)first + spans_bytes(size));
	for (uint32_t i = 1; i < size->levels; i++) {
		level_open(&levels[i], key_bits_of(size, i), at);
		at += level_bytes(key_bits_of(size, i));
	}
	levels_at_first = size->levels;
	atomic_store(&levels_word, 1 | size->levels << READY_SHIFT);
	__atomic_store_n(&live_spans, spans, __ATOMIC_RELEASE);
}

size_t live_give_back(void)
{
	uint32_t word = atomic_load(&levels_word), open;
	size_t bytes = 0;

	do
		open = word & OPEN_MASK;
	while (!atomic_compare_exchange_strong(&levels_word, &word, open | open << READY_SHIFT));
	for (uint32_t i = 1; i < open && i < levels_at_first; i++)
		bytes += level_bytes(levels[i].key_bits);
	return bytes;
}

/* The second level has one size, which live_maybe_here knows: no other can be added. */
static bool lacks_the_last(uint32_t word)
{
	return word == ((LIVE_LEVELS - 1) | (uint32_t)(LIVE_LEVELS - 1) << READY_SHIFT);
}

size_t live_last_bytes(void)
{
	return lacks_the_last(atomic_load(&levels_word)) ? level_bytes(LAST_BITS_MOST) : 0;
}

void live_add_last(void *memory)
{
	uint32_t word = atomic_load(&levels_word);

	level_open(&levels[LIVE_LEVELS - 1], LAST_BITS_MOST, memory);
	while (lacks_the_last(word) &&
	    !atomic_compare_exchange_weak(&levels_word, &word, word + (1 << READY_SHIFT)))
		;
}

void live_close(void)
{
	atomic_store(&levels_word, 0);
	__atomic_store_n(&live_spans, (const struct live_spans *)no_spans, __ATOMIC_RELEASE);
}

/* A key is a block's address with each bit turned over: LeakSanitizer takes any word in a library's data that
 * is a block's address for a use of that block, and every sampled leak would be none. No block's key is
 * KEY_EMPTY or KEY_BUSY. */
static inline uint64_t key_of(const void *pointer)
{
	return ~(uint64_t)(uintptr_t)pointer;
}

/* The byte of a filter of 2^bits + WINDOW. Blocks are 16-byte aligned. Each 64 KiB of addresses have
 * adjacent bytes, from a position that is a hash of their number: neighbours share cache lines and pages, as
 * they do in the heap, but never a byte. */
static inline size_t filter_at(const void *pointer, uint32_t bits)
{
	uint32_t window = (uint32_t)((uintptr_t)pointer >> 16) * 0x9e3779b1u >> (32 - bits);

	return window + ((uint32_t)(uint16_t)(uintptr_t)pointer >> 4);
}

/* Another multiplier than the first filter's: blocks that share a byte there must not share one here. */
static inline size_t confirm_at(const void *pointer, uint32_t bits)
{
	uint64_t window = ((uint64_t)(uintptr_t)pointer >> 16) * 0xd1b54a32d192ed03ull >> (64 - bits);

	return ((size_t)1 << bits) + WINDOW + window + (((uintptr_t)pointer & 0xffff) >> 4);
}

static inline bool filter_has(const uint8_t *filter, uint32_t bits, const void *pointer)
{
	return __atomic_load_n(&filter[filter_at(pointer, bits)], __ATOMIC_RELAXED) &&
	    __atomic_load_n(&filter[confirm_at(pointer, bits)], __ATOMIC_RELAXED);
}

static _Atomic uint8_t *filter_byte(const struct level *level, const void *pointer)
{
	return (_Atomic uint8_t *)&level->filter[filter_at(pointer, level->filter_bits)];
}

static _Atomic uint8_t *confirm_byte(const struct level *level, const void *pointer)
{
	return (_Atomic uint8_t *)&level->filter[confirm_at(pointer, level->filter_bits)];
}

static _Atomic uint8_t *span_byte(const void *pointer)
{
	/* of live_open's memory, and not of no_spans: there are levels */
	struct live_spans *spans = (struct live_spans *)__atomic_load_n(&live_spans, __ATOMIC_RELAXED);

	return (_Atomic uint8_t *)&spans->counts[(uintptr_t)pointer >> LIVE_SPAN_SHIFT & spans->mask];
}

static void count_up(_Atomic uint8_t *byte)
{
	uint8_t old = atomic_load_explicit(byte, memory_order_relaxed);

	while (old != FILTER_STUCK && !one_thread_exchange8(byte, &old, (uint8_t)(old + 1)))
		;
}

static void count_down(_Atomic uint8_t *byte)
{
	uint8_t old = atomic_load_explicit(byte, memory_order_relaxed);

	while (old != FILTER_STUCK && old != 0 && !one_thread_exchange8(byte, &old, (uint8_t)(old - 1)))
		;
}

static void filter_add(const struct level *level, const void *pointer)
{
	count_up(span_byte(pointer));
	count_up(filter_byte(level, pointer));
	count_up(confirm_byte(level, pointer));
}

static void filter_remove(const struct level *level, const void *pointer)
{
	count_down(span_byte(pointer));
	count_down(filter_byte(level, pointer));
	count_down(confirm_byte(level, pointer));
}

static inline uint32_t bucket_at(const struct level *level, uint64_t hash, uint32_t more)
{
	const uint32_t mask = ((1u << level->key_bits) - 1) & ~(uint32_t)(BUCKET_KEYS - 1);

	return ((uint32_t)(hash >> (64 - level->key_bits)) + more) & mask;
}

/* First key of the window where a block should be: that of its neighbours in memory. A program mostly frees
 * near what it allocated last, so that the cache lines of the keys and, in a level of 130 MB, the page table
 * entries are those of a moment ago. Multiples of the golden ratio spread the pages of a heap evenly. */
static inline uint32_t window_near(const struct level *level, const void *pointer)
{
	const uint64_t address = (uintptr_t)pointer;
	const uint32_t in_page = (uint32_t)(address & ((1u << PAGE_SHIFT) - 1)) >> PAGE_KEY_SHIFT;

	return bucket_at(level, (address >> PAGE_SHIFT) * 0x9e3779b97f4a7c15ull, in_page);
}

/* Of two more, anywhere: where small blocks of several pages meet, theirs may be full. Not the hashes of the
 * filter, so that a filter collision is not a window collision too. */
static inline uint32_t window_far(const struct level *level, const void *pointer, uint32_t number)
{
	return bucket_at(level,
	    ((uint64_t)(uintptr_t)pointer >> 4) * (number ? 0xd6e8feb86659fd93ull : 0xc2b2ae3d27d4eb4full),
	    0);
}

#define FOR_WINDOW(level, start, i)                                                 \
	for (uint32_t i##_n = 0, i = (start); i##_n < BUCKET_KEYS * WINDOW_BUCKETS; \
	     i##_n++, i = ((start) + i##_n) & ((1u << (level)->key_bits) - 1))

/* Has no branch per key: that is faster when the key is not found, the usual case. */
static bool window_has(const struct level *level, uint32_t start, uint64_t wanted)
{
	const uint32_t mask = (1u << level->key_bits) - 1;

	for (uint32_t b = 0; b < WINDOW_BUCKETS; b++) {
		const _Atomic uint64_t *keys = &level->keys[(start + b * BUCKET_KEYS) & mask];
		bool any = false;

		for (uint32_t i = 0; i < BUCKET_KEYS; i++)
			any |= atomic_load_explicit(&keys[i], memory_order_relaxed) == wanted;
		if (any)
			return true;
	}
	return false;
}

static bool level_take(struct level *level, const void *pointer, struct live_entry *entry)
{
	const uint64_t wanted = key_of(pointer);
	uint32_t start = window_near(level, pointer);

	for (uint32_t far = 0; !window_has(level, start, wanted); far++) {
		if (far == WINDOWS_FAR)
			return false;
		start = window_far(level, pointer, far);
	}
	FOR_WINDOW (level, start, i) {
		uint64_t key = wanted;

		if (atomic_load_explicit(&level->keys[i], memory_order_relaxed) != wanted)
			continue;
		/* If two threads free the same block (a bug of the program), only one gets it. */
		if (!one_thread_exchange64(&level->keys[i], &key, KEY_BUSY))
			return false;
		*entry = level->entries[i];
		atomic_store_explicit(&level->keys[i], KEY_EMPTY, memory_order_release);
		one_thread_add(&level->used, UINT64_MAX);
		filter_remove(level, pointer);
		return true;
	}
	return false;
}

static bool window_put(
    struct level *level, uint32_t start, const void *pointer, const struct live_entry *entry)
{
	FOR_WINDOW (level, start, i) {
		uint64_t key = KEY_EMPTY;

		if (atomic_load_explicit(&level->keys[i], memory_order_relaxed) != KEY_EMPTY ||
		    !one_thread_exchange64(&level->keys[i], &key, KEY_BUSY))
			continue;
		level->entries[i] = *entry;
		filter_add(level, pointer);
		atomic_store_explicit(&level->keys[i], key_of(pointer), memory_order_release);
		return true;
	}
	return false;
}

static bool level_put(struct level *level, const void *pointer, const struct live_entry *entry)
{
	const bool room = one_thread_fetch_add(&level->used, 1) < 1u << (level->key_bits - 1);

	if (room && window_put(level, window_near(level, pointer), pointer, entry))
		return true;
	for (uint32_t far = 0; room && far < WINDOWS_FAR; far++)
		if (window_put(level, window_far(level, pointer, far), pointer, entry))
			return true;
	one_thread_add(&level->used, UINT64_MAX);
	return false;
}

/* Written out for each level: several times faster than a loop over levels[]. A signal handler may take their
 * memory away until sample_enter. */
bool live_maybe_here(const void *pointer)
{
	sample_enter();
	const uint32_t open = atomic_load_explicit(&levels_word, memory_order_relaxed) & OPEN_MASK;
	const bool maybe = (open > 0 && filter_has(levels[0].filter, levels[0].filter_bits, pointer)) ||
	    (open > 1 && filter_has(levels[1].filter, SECOND_FILTER_BITS, pointer)) ||
	    (open > 2 && filter_has(levels[2].filter, levels[2].filter_bits, pointer));
	sample_leave();
	return maybe;
}

bool live_take(const void *pointer, struct live_entry *entry)
{
	if (key_of(pointer) <= KEY_BUSY)
		return false; /* the last two addresses: no block is there, and an empty key is none */
	uint32_t open = levels_open();
	for (uint32_t i = 0; i < open; i++)
		if (filter_has(levels[i].filter, levels[i].filter_bits, pointer) &&
		    level_take(&levels[i], pointer, entry))
			return true;
	return false;
}

uint32_t live_put(const void *pointer, const struct live_entry *entry, struct live_entry *stale)
{
	if (key_of(pointer) <= KEY_BUSY)
		return LIVE_PUT_FULL; /* as in live_take */
	uint32_t flags = live_take(pointer, stale) ? LIVE_PUT_STALE : 0;
	uint32_t word = atomic_load(&levels_word), open = word & OPEN_MASK;
	for (uint32_t i = 0; i < open; i++)
		if (level_put(&levels[i], pointer, entry))
			return flags;
	if (open < word >> READY_SHIFT) {
		atomic_compare_exchange_strong(&levels_word, &word, word + 1);
		if (level_put(&levels[levels_open() - 1], pointer, entry))
			return flags;
	}
	return flags | LIVE_PUT_FULL;
}

void live_visit(bool (*visit)(const void *pointer, struct live_entry *entry))
{
	uint32_t open = levels_open();

	for (uint32_t l = 0; l < open; l++) {
		struct level *level = &levels[l];

		for (uint32_t i = 0; i < 1u << level->key_bits; i++) {
			uint64_t key = atomic_load_explicit(&level->keys[i], memory_order_relaxed);

			/* Busy: a thread of the parent held it at the fork; that thread does not exist
			 * here. */
			if (key <= KEY_BUSY ||
			    !atomic_compare_exchange_strong(&level->keys[i], &key, KEY_BUSY))
				continue;
			const void *pointer = (const void *)(uintptr_t)~key;
			bool keep = visit(pointer, &level->entries[i]);
			atomic_store(&level->keys[i], keep ? key : KEY_EMPTY);
			if (keep)
				continue;
			atomic_fetch_sub(&level->used, 1);
			filter_remove(level, pointer);
		}
	}
}

static bool forget(const void *pointer, struct live_entry *entry)
{
	return false;
}

void live_clear(void)
{
	live_visit(forget);
}

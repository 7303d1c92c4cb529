/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/place.h"

#include "preload/lookup.h"
#include "preload/mapping.h"
#include "preload/request.h"
#include "preload/sample.h"
#include "preload/thread.h"

#include <stdatomic.h>
#include <time.h>

enum {
	SEGMENT_WORDS = REGION_SEGMENT_SLOTS / 64,
	SEARCH_WORDS = 64, /* bound of the search for a free slot */

	STATE_EARLY = 0,  /* the constructor has not run */
	STATE_CLOSED = 1, /* no region: the hooks only forward */
	STATE_FORKED = 2, /* the libc told us; the place is claimed at the first event that needs one */
	STATE_CLAIMING = 3,
	STATE_OPEN = 4,

	WIPED = 0, /* what the kernel leaves in a forked child */
	WIPED_OPEN = 1,
	WIPED_CLAIMING = 2,

	NO_PLACE = UINT16_MAX, /* matches no entry: nobody's slots are touched */
};

static struct place_setup setup;
static struct region_header *header;
static struct region_place *place;
static uint32_t place_number;
static _Atomic uint32_t state;
static int (*clock_now)(clockid_t clock, struct timespec *now);

/* Breakpoints come to a child by inheritance: to one that was forked before they were there, never. */
static bool untapped, forked_untapped, fork_seen;

/* Segments that this process owns, and which of their slots are taken. */
static uint16_t segments[REGION_SEGMENTS];
static _Atomic uint32_t segments_owned, segments_growing;
static _Atomic uint64_t taken[REGION_SEGMENTS][SEGMENT_WORDS]; /* by index into segments[] */
static _Atomic uint32_t taken_count, cursor;
/* index into segments[] of a region segment */
static uint16_t segment_at[REGION_SEGMENTS];

static struct region_place *place_at(uint32_t number)
{
	return (struct region_place *)(void *)(setup.base + setup.places_offset) + number;
}

struct region_slot *place_slot(uint32_t slot)
{
	return (struct region_slot *)(void *)(setup.base + setup.slots_offset) + slot;
}

struct region_slot *place_kept(uint32_t slot)
{
	return (struct region_slot *)(void *)(setup.base + setup.kept_offset) + slot;
}

struct region_place *place_self(void)
{
	return place;
}

struct region_header *place_header(void)
{
	return header;
}

uint64_t place_key(void)
{
	return setup.key | place_number;
}

uint32_t place_index(void)
{
	return place_number;
}

bool place_tapped(void)
{
	return !untapped && atomic_load_explicit(&header->mode, memory_order_relaxed) == REGION_MODE_TRIGGER;
}

unsigned char *place_buffers(void)
{
	return setup.base + setup.buffers_offset;
}

/* The kernel's own function rather than the libc's, which programs replace (faketime does, and it allocates).
 * The clock is one that it can tell without a system call. */
static void find_clock(void)
{
	void *found = lookup_vdso("__vdso_clock_gettime");
	if (!found)
		found = lookup_vdso("__kernel_clock_gettime");
	if (!found && setup.wiped) { /* valgrind hides it; no sandbox is in force yet */
		struct lookup wish = {.name = "clock_gettime"};
		lookup_next(&wish, 1);
		found = wish.found;
	}
	clock_now = found ? (int (*)(clockid_t, struct timespec *))(uintptr_t)found : NULL;
}

uint64_t place_now_ns(void)
{
	struct timespec now;
	if (!clock_now || clock_now((clockid_t)setup.clock_id, &now) != 0)
		return 0;
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void region_tally_add(struct region_tally *tally, struct weight weight)
{
	atomic_fetch_add_explicit(&tally->samples, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&tally->bytes_q8, weight.bytes_q8, memory_order_relaxed);
	atomic_fetch_add_explicit(&tally->objects_q16, weight.objects_q16, memory_order_relaxed);
}

static void region_tally_subtract(struct region_tally *tally, struct weight weight)
{
	atomic_fetch_sub_explicit(&tally->samples, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&tally->bytes_q8, weight.bytes_q8, memory_order_relaxed);
	atomic_fetch_sub_explicit(&tally->objects_q16, weight.objects_q16, memory_order_relaxed);
}

void place_count_loss(enum region_loss cause, uint64_t size_bytes, uint64_t period_bytes)
{
	region_tally_add(&place->lost[cause], weight_of(size_bytes, period_bytes));
}

/* ---- slots */

/* Takes another segment of the region; one thread at a time, the others go on with what there is. */
static void segments_grow(void)
{
	if (atomic_exchange(&segments_growing, 1))
		return;
	uint32_t owned = atomic_load(&segments_owned);
	_Atomic uint16_t *owners = (_Atomic uint16_t *)(void *)(setup.base + setup.owners_offset);
	for (uint32_t i = 0; i < setup.segments; i++) {
		uint16_t nobody = 0;
		if (atomic_load_explicit(&owners[i], memory_order_relaxed) != 0 ||
		    !atomic_compare_exchange_strong(&owners[i], &nobody, (uint16_t)(place_number + 1)))
			continue;
		for (uint32_t w = 0; w < SEGMENT_WORDS; w++)
			atomic_store(&taken[owned][w], 0);
		segments[owned] = (uint16_t)i;
		segment_at[i] = (uint16_t)owned;
		atomic_store(&segments_owned, owned + 1);
		break;
	}
	atomic_store(&segments_growing, 0);
}

/* The cursor goes round, so that a slot rests as long as possible before it is used again: a stack that
 * arrives late still finds its slot's last owner in the sampler's memory. */
static uint32_t slot_take(void)
{
	uint32_t owned = atomic_load(&segments_owned);
	if (atomic_load_explicit(&taken_count, memory_order_relaxed) * 2 >= owned * REGION_SEGMENT_SLOTS) {
		segments_grow();
		owned = atomic_load(&segments_owned);
	}
	uint32_t words = owned * SEGMENT_WORDS;
	if (!words)
		return REGION_NO_SLOT;
	uint32_t at = atomic_load_explicit(&cursor, memory_order_relaxed);
	for (uint32_t n = 0; n < SEARCH_WORDS && n < words; n++, at++) {
		uint32_t word = at % words;
		_Atomic uint64_t *bits = &taken[word / SEGMENT_WORDS][word % SEGMENT_WORDS];
		uint64_t old = atomic_load_explicit(bits, memory_order_relaxed);
		while (~old) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~old);
			if (!atomic_compare_exchange_weak(bits, &old, old | 1ull << bit))
				continue;
			atomic_fetch_add_explicit(&taken_count, 1, memory_order_relaxed);
			atomic_store_explicit(&cursor, bit == 63 ? at + 1 : at, memory_order_relaxed);
			return segments[word / SEGMENT_WORDS] * (uint32_t)REGION_SEGMENT_SLOTS +
			    (word % SEGMENT_WORDS) * 64 + bit;
		}
	}
	return REGION_NO_SLOT;
}

static void slot_give_back(uint32_t number)
{
	uint32_t in_segment = number % REGION_SEGMENT_SLOTS;
	uint32_t at = segment_at[number / REGION_SEGMENT_SLOTS];
	struct region_slot *slot = place_slot(number);
	uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
	slot->freed_order = atomic_fetch_add_explicit(&place->next_seq, 1, memory_order_relaxed);
	atomic_store_explicit(&slot->word, (word & ~(uint64_t)0xff) | SLOT_FREED, memory_order_release);
	atomic_fetch_and(&taken[at][in_segment / 64], ~(1ull << in_segment % 64));
	atomic_fetch_sub_explicit(&taken_count, 1, memory_order_relaxed);
}

/* Before a slot is used again: what was live at the peak stays known (proto/region.h). */
static void slot_keep(uint32_t number)
{
	const struct region_slot *slot = place_slot(number);
	struct region_slot *kept = place_kept(number);
	uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
	uint64_t peak = atomic_load_explicit(&place->peak_order, memory_order_relaxed);
	if ((word & 0xff) != SLOT_FREED || word >> 8 >= peak || slot->freed_order < peak)
		return;
	if (kept->word == word && kept->freed_order >= peak)
		return; /* a mapping, as it was at the peak (mapping.c) */
	atomic_store_explicit(&kept->word, SLOT_WRITING, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	kept->freed_order = slot->freed_order;
	kept->size_bytes = slot->size_bytes;
	kept->period_bytes = slot->period_bytes;
	kept->time_ns = slot->time_ns;
	kept->tid = slot->tid;
	kept->flags = slot->flags;
	kept->unmapped_pages = slot->unmapped_pages;
	atomic_store_explicit(&kept->word, word, memory_order_release);
}

static void slot_write(const void *pointer, const struct live_entry *entry, uint16_t flags,
    uint32_t origin_slot, uint64_t origin_seq, uint32_t origin_place)
{
	struct region_slot *slot = place_slot(entry->slot);
	slot_keep(entry->slot);
	atomic_store_explicit(&slot->word, entry->seq << 8 | SLOT_WRITING, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	slot->address = (uintptr_t)pointer;
	slot->size_bytes = entry->size_bytes;
	slot->period_bytes = entry->period_bytes;
	slot->time_ns = entry->time_ns;
	slot->tid = entry->tid;
	slot->flags = entry->flags | flags;
	slot->unmapped_pages = entry->unmapped_pages;
	slot->origin_seq = origin_seq;
	slot->origin_slot = origin_slot;
	slot->origin_place = (uint16_t)origin_place;
	atomic_store_explicit(&slot->word, entry->seq << 8 | SLOT_LIVE, memory_order_release);
}

/* ---- the books that the process keeps itself, so that they are right whatever is lost on the way */

static void raise_peak_order(uint64_t order)
{
	uint64_t old = atomic_load_explicit(&place->peak_order, memory_order_relaxed);
	while (old < order && !atomic_compare_exchange_weak(&place->peak_order, &old, order))
		;
}

static void live_add(struct weight weight, uint64_t now_ns, uint64_t seq)
{
	region_tally_add(&place->live, weight);
	uint64_t variance = weight_fixed(weight.bytes_variance, 0);
	variance += atomic_fetch_add_explicit(&place->live_variance, variance, memory_order_relaxed);
	uint64_t objects_variance = weight_fixed(weight.objects_variance, WEIGHT_OBJECTS_VARIANCE_SHIFT);
	objects_variance +=
	    atomic_fetch_add_explicit(&place->live_objects_variance, objects_variance, memory_order_relaxed);
	if (setup.no_peak)
		return;
	uint64_t bytes = atomic_load_explicit(&place->live.bytes_q8, memory_order_relaxed);
	uint64_t peak = atomic_load_explicit(&place->peak_bytes_q8, memory_order_relaxed);
	while (bytes > peak && (int64_t)bytes > 0) {
		if (!atomic_compare_exchange_weak(&place->peak_bytes_q8, &peak, bytes))
			continue;
		raise_peak_order(seq + 1);
		/* The rest of the peak's description may be another thread's by a sample or two. */
		atomic_store_explicit(
		    &place->peak_objects_q16, atomic_load(&place->live.objects_q16), memory_order_relaxed);
		atomic_store_explicit(
		    &place->peak_samples, atomic_load(&place->live.samples), memory_order_relaxed);
		atomic_store_explicit(&place->peak_variance, variance, memory_order_relaxed);
		atomic_store_explicit(&place->peak_objects_variance, objects_variance, memory_order_relaxed);
		atomic_store_explicit(&place->peak_ns, now_ns, memory_order_relaxed);
		break;
	}
}

static void live_subtract(const struct live_entry *entry)
{
	struct weight weight = mapping_weight(entry);
	region_tally_subtract(&place->live, weight);
	atomic_fetch_sub_explicit(
	    &place->live_variance, weight_fixed(weight.bytes_variance, 0), memory_order_relaxed);
	atomic_fetch_sub_explicit(&place->live_objects_variance,
	    weight_fixed(weight.objects_variance, WEIGHT_OBJECTS_VARIANCE_SHIFT), memory_order_relaxed);
}

/* In a forked child that has not taken over this entry yet, the slot is the parent's. */
bool place_is_mine(const struct live_entry *entry)
{
	return entry->slot != REGION_NO_SLOT && entry->place == place_number;
}

static void entry_drop(const struct live_entry *entry)
{
	if (!place_is_mine(entry))
		return;
	slot_give_back(entry->slot);
	live_subtract(entry);
}

static void log_free(const struct live_entry *entry)
{
	uint64_t at = atomic_fetch_add_explicit(&header->frees_head, 1, memory_order_relaxed);
	struct region_free *entry_free =
	    (struct region_free *)(void *)(setup.base + setup.frees_offset) + at % REGION_FREES;
	/* A writer that slept while the ring went once round: one of the two entries is missing then, none is
	 * mixed. */
	uint64_t old = atomic_load_explicit(&entry_free->word, memory_order_relaxed);
	if (old == REGION_FREE_BUSY || old > at ||
	    !atomic_compare_exchange_strong(&entry_free->word, &old, REGION_FREE_BUSY))
		return;
	atomic_thread_fence(memory_order_release);
	entry_free->seq = entry->seq;
	entry_free->size_bytes = entry->size_bytes;
	entry_free->period_bytes = entry->period_bytes;
	entry_free->time_ns = entry->time_ns;
	entry_free->freed_ns = place_now_ns();
	entry_free->slot = entry->slot;
	entry_free->tid = entry->tid;
	entry_free->freed_tid = thread_tid();
	entry_free->place = place_number;
	atomic_store_explicit(&entry_free->word, at + 1, memory_order_release);
}

void place_remove(const struct live_entry *entry)
{
	if (!place_is_mine(entry))
		return;
	entry_drop(entry);
	log_free(entry);
}

bool place_enter(const void *pointer, struct live_entry *entry, bool room)
{
	struct weight weight = weight_of(entry->size_bytes, entry->period_bytes);
	entry->seq = atomic_fetch_add_explicit(&place->next_seq, 1, memory_order_relaxed);
	entry->place = (uint16_t)place_number;
	region_tally_add(&place->allocated, weight);
	entry->slot = room ? slot_take() : REGION_NO_SLOT;
	if (entry->slot == REGION_NO_SLOT) {
		region_tally_add(&place->lost[REGION_LOSS_TABLE_FULL], weight);
		return false;
	}
	slot_write(pointer, entry, 0, 0, 0, 0);
	live_add(weight, entry->time_ns, entry->seq);
	return true;
}

void place_insert(const void *pointer, struct live_entry *entry)
{
	struct live_entry stale;
	if (!place_enter(pointer, entry, true))
		return;
	int result = live_put(pointer, entry, &stale);
	if (result == LIVE_PUT_STALE || result == LIVE_PUT_FULL_STALE) {
		entry_drop(&stale);
		place_count_loss(REGION_LOSS_STALE, stale.size_bytes, stale.period_bytes);
	}
	if (result == LIVE_PUT_FULL || result == LIVE_PUT_FULL_STALE) {
		/* Its free could not be told: better not live at all. */
		entry_drop(entry);
		entry->slot = REGION_NO_SLOT;
		place_count_loss(REGION_LOSS_TABLE_FULL, entry->size_bytes, entry->period_bytes);
	}
}

void place_restore(const void *pointer, const struct live_entry *entry)
{
	struct live_entry stale;
	int result = live_put(pointer, entry, &stale);
	if (result == LIVE_PUT_FULL || result == LIVE_PUT_FULL_STALE) {
		entry_drop(entry);
		if (entry->place == place_number)
			place_count_loss(REGION_LOSS_TABLE_FULL, entry->size_bytes, entry->period_bytes);
	}
}

/* ---- processes */

void place_open(const struct place_setup *with)
{
	setup = *with;
	find_clock();
	header = (struct region_header *)(void *)setup.base;
	place = place_at(0);
	place_number = 0;
	place->pid = setup.pid;
	place->start_ns = place_now_ns();
	request_open(header->start_paused == 1);
	request_begin(place);
	/* not at the first sample: threads that take theirs at once would find it under way, and no slot */
	segments_grow();
	if (setup.wiped)
		atomic_store(setup.wiped, WIPED_OPEN);
	atomic_store(&place->state, PLACE_READY);
	atomic_store(&state, STATE_OPEN);
}

bool place_inherit(const void *pointer, struct live_entry *entry)
{
	if (entry->place == place_number || entry->slot == REGION_NO_SLOT)
		return true;
	struct live_entry mine = *entry;
	mine.slot = slot_take();
	if (mine.slot == REGION_NO_SLOT) {
		place_count_loss(REGION_LOSS_TABLE_FULL, entry->size_bytes, entry->period_bytes);
		return false;
	}
	mine.seq = atomic_fetch_add_explicit(&place->next_seq, 1, memory_order_relaxed);
	mine.place = (uint16_t)place_number;
	slot_write(pointer, &mine, SLOT_INHERITED, entry->slot, entry->seq, entry->place);
	live_add(mapping_weight(&mine), mine.time_ns, mine.seq);
	place->inherited++;
	*entry = mine;
	return true;
}

/* In a forked child, at its first sampled event. Other threads of the child (rare: pthread_create comes here
 * first) see STATE_CLAIMING and do without. */
static void place_claim(void)
{
	uint32_t parent = place_number;
	place_number = NO_PLACE;
	atomic_store(&segments_owned, 0);
	atomic_store(&segments_growing, 0);
	atomic_store(&taken_count, 0);
	atomic_store(&cursor, 0);
	place = NULL;
	for (uint32_t n = 1; n < REGION_PLACES && !place; n++) {
		struct region_place *candidate = place_at(n);
		uint32_t free_state = PLACE_FREE;
		if (atomic_compare_exchange_strong(&candidate->state, &free_state, PLACE_CLAIMED)) {
			place = candidate;
			place_number = n;
		}
	}
	if (!place) {
		atomic_fetch_add(&header->places_exhausted, 1);
		atomic_store(&state, STATE_CLOSED);
		return;
	}
	untapped |= !fork_seen;
	fork_seen = false;
	place->pid = thread_tid();
	place->parent = parent + 1;
	place->start_ns = place_now_ns();
	request_begin(place);
	segments_grow();
	sample_reseed();
	live_visit(place_inherit);
	mapping_inherit();
	atomic_store(&place->state, PLACE_READY);
	atomic_fetch_add(&header->places_claimed, 1);
	atomic_store(&state, STATE_OPEN);
}

void place_forking(void)
{
	if (atomic_load(&state) == STATE_OPEN)
		forked_untapped = atomic_load(&header->mode) != REGION_MODE_TRIGGER;
}

void place_forked(void)
{
	if (atomic_load(&state) != STATE_OPEN)
		return;
	untapped |= forked_untapped;
	fork_seen = true;
	sample_forked();
	if (!setup.wiped)
		/* most children execute something else and need no place */
		atomic_store(&state, STATE_FORKED);
}

bool place_closed(void)
{
	return atomic_load(&state) == STATE_CLOSED;
}

void place_close(void)
{
	atomic_store(&state, STATE_CLOSED);
}

bool place_ready(void)
{
	uint32_t now = atomic_load_explicit(&state, memory_order_acquire);
	if (now == STATE_CLOSED || now == STATE_EARLY)
		return false;
	if (setup.wiped) {
		uint32_t word = atomic_load_explicit(setup.wiped, memory_order_acquire);
		if (word == WIPED && atomic_compare_exchange_strong(setup.wiped, &word, WIPED_CLAIMING)) {
			place_claim();
			atomic_store(setup.wiped, WIPED_OPEN);
			word = WIPED_OPEN;
		}
		return word == WIPED_OPEN && atomic_load(&state) == STATE_OPEN;
	}
	if (now == STATE_FORKED && atomic_compare_exchange_strong(&state, &now, STATE_CLAIMING))
		place_claim();
	return atomic_load(&state) == STATE_OPEN;
}

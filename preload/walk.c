/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/walk.h"

#include "preload/lookup.h"
#include "preload/place.h"
#include "preload/sample.h"
#include "proto/walk.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static uintptr_t own_start, own_end; /* of this library */

static struct walk_area *area_of(void)
{
	return place_part(place_view.region.offsets.walk);
}

void walk_open(void)
{
	struct walk_area *area = area_of();
	unsigned char *first = (unsigned char *)area->rows, *end = (unsigned char *)area->counts;
	lookup_extent((const void *)(uintptr_t)walk_open, &own_start, &own_end);
	/* A stray store of the program must not change what is read here. If it is refused: no matter. Not
	 * where a larger page of the kernel's would take in what is written beside it (aarch64). */
	if ((((uintptr_t)first | (uintptr_t)end) & (getauxval(AT_PAGESZ) - 1)) == 0)
		(void)mprotect(first, (size_t)(end - first), PROT_READ);
}

static bool table_find(const struct walk_row *table, size_t entries, uintptr_t pc, struct walk_rule *rule)
{
	size_t at = walk_place_of(pc, entries);
	for (size_t i = 0; i < WALK_PROBES; i++, at = (at + 1) & (entries - 1)) {
		const struct walk_row *row = &table[at];
		uint64_t found = atomic_load_explicit(&row->pc, memory_order_acquire);
		if (found == pc) {
			uint64_t word = atomic_load_explicit(&row->rule, memory_order_relaxed);
			__builtin_memcpy(rule, &word, sizeof(word));
			return true;
		}
		if (!found)
			return false;
	}
	return false;
}

static uint32_t number_of(const struct walk_area *area, uint64_t hash)
{
	size_t at = walk_place_of(hash, WALK_STACK_ENTRIES);
	for (size_t i = 0; i < WALK_PROBES; i++, at = (at + 1) & (WALK_STACK_ENTRIES - 1)) {
		const struct walk_stack *stack = &area->stacks[at];
		uint64_t found = atomic_load_explicit(&stack->hash, memory_order_acquire);
		if (found == hash) {
			uint64_t number = atomic_load_explicit(&stack->number, memory_order_relaxed);
			return number < WALK_STACKS ? (uint32_t)number : 0;
		}
		if (!found)
			return 0;
	}
	return 0;
}

/* Rows of files that may be unmapped: valid for one generation, and for the image's own process. */
static bool later_usable(const struct walk_area *area, uint64_t *generation)
{
	*generation = atomic_load_explicit(&area->generation, memory_order_acquire);
	return place_index() == 0 &&
	    atomic_load_explicit(&area->later_generation, memory_order_acquire) == *generation;
}

static inline uintptr_t word_at(uintptr_t address)
{
	return *(const volatile uintptr_t *)address;
}

/* Goes to the caller's frame. False: it is not within [at->sp, top). The words that are read lie above the
 * stack pointer of the frame that is left, and below the end of the stack. */
static bool step(struct walk_start *at, struct walk_rule rule, uintptr_t top)
{
	uintptr_t cfa = (rule.from_fp ? at->fp : at->sp) + (uintptr_t)(intptr_t)rule.cfa_bytes;
	uintptr_t ra_at = cfa + (uintptr_t)(intptr_t)rule.ra_words * sizeof(uintptr_t);
	uintptr_t fp_at = cfa + (uintptr_t)(intptr_t)rule.fp_words * sizeof(uintptr_t);
	if (cfa <= at->sp || cfa % sizeof(uintptr_t) || ra_at < at->sp || ra_at > top - sizeof(uintptr_t))
		return false;
	if (rule.fp_words) {
		if (fp_at < at->sp || fp_at > top - sizeof(uintptr_t))
			return false;
		at->fp = word_at(fp_at);
	}
	at->pc = word_at(ra_at);
	at->sp = cfa;
	return true;
}

uint32_t walk_stack(struct walk_start at)
{
	const struct walk_area *area = area_of();
	const uintptr_t low = sample_thread.stack_low, top = sample_thread.stack_top;
	uint64_t hash = WALK_HASH_BEGIN, generation;
	bool later = later_usable(area, &generation), used_later = false;
	if (!atomic_load_explicit(&place_header()->walk, memory_order_relaxed) ||
	    place_index() >= WALK_PLACES || at.sp < low || at.sp >= top || !low || !at.pc)
		return 0;
	for (uint32_t depth = 0; depth < WALK_FRAMES_MAX; depth++) {
		struct walk_rule rule;
		if (!table_find(area->rows, WALK_ROWS, at.pc, &rule)) {
			if (!later || !table_find(area->later, WALK_LATER_ROWS, at.pc, &rule))
				return 0;
			used_later = true;
		}
		if (at.pc < own_start || at.pc >= own_end)
			hash = walk_hash_step(hash, at.pc);
		if (rule.ra_words && !step(&at, rule, top))
			return 0;
		if (!rule.ra_words || !at.pc) {
			hash = walk_hash_end(hash, used_later ? generation + 1 : 0);
			uint32_t number = number_of(area, hash);
			/* The sampler may have emptied the table meanwhile. */
			return used_later && !later_usable(area, &generation) ? 0 : number;
		}
	}
	return 0;
}

void walk_count(uint32_t stack, struct weight weight)
{
	struct walk_counts *counts = &area_of()->counts[place_index()];
	struct walk_count *count = &counts->count[stack];
	_Atomic uint64_t *changed = &counts->changed[stack / 64];
	atomic_fetch_add_explicit(&count->samples, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&count->bytes_q8, weight.bytes_q8, memory_order_relaxed);
	atomic_fetch_add_explicit(&count->objects_q16, weight.objects_q16, memory_order_release);
	if (!(atomic_load_explicit(changed, memory_order_relaxed) >> stack % 64 & 1))
		atomic_fetch_or_explicit(changed, 1ull << stack % 64, memory_order_release);
	atomic_fetch_add_explicit(&place_self()->walked, 1, memory_order_release);
}

bool walk_is_compared(void)
{
	uint64_t one_in = atomic_load_explicit(&place_header()->walk, memory_order_relaxed);
	/* the generator's state is a multiple of an odd number: its upper bits are as good as random */
	return one_in && (sample_thread.random >> 32 & (one_in - 1)) == 0;
}

void walk_unmapping(void)
{
	struct walk_area *area = area_of();
	atomic_fetch_add(&area->unmapping, 1);
	atomic_fetch_add(&area->generation, 1);
}

void walk_unmapped(void)
{
	atomic_fetch_sub(&area_of()->unmapping, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/walk.h"

#include "preload/goroutine.h"
#include "preload/lookup.h"
#include "preload/memory.h"
#include "preload/one_thread.h"
#include "preload/place.h"
#include "preload/sample.h"
#include "preload/thread.h"
#include "proto/walk.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>

/*
 * Why no read here faults, whatever the rows say. A walk begins in a frame of ours, with sp = that frame's
 * address, and only if sp is in [low, top) of the thread's own stack. It reads words in [sp, top) alone, at
 * multiples of 8, and each step moves sp up; so there are at most as many steps as words, and no more than
 * WALK_FRAMES_MAX. What lies between a live frame and the end of the same stack is mapped:
 *
 *   main thread      one mapping that grows down and begins below sp: nothing is read where it would have to
 *                    grow, nor above __libc_stack_end. The kernel maps nothing of its own choice within
 *                    MAIN_STACK_BYTES below its end (thread.c); what a program places there itself
 *                    raises low (thread_mapped), but for what it maps by a raw system call.
 *   other threads    one mapping from pthread_create, up to the control block; guard pages are below sp
 *   not known        low is 0: no walk. So it is for threads of a raw clone, on their own TLS; one that
 *                    shares its parent's has an sp that is not in the parent's stack.
 *   signal stacks, fibers, split stacks: sp is not in [low, top): no walk. If such a stack is an array on the
 *                    thread's own stack, its frames are between sp and top, as all others are.
 *   vfork            the child runs on its parent's stack, with its TLS
 *
 * From Go's call of C a walk goes on in memory that is known to be readable (goroutine.h), under the same
 * rules: it reads words in [sp, end of the goroutine's stack), and each step moves sp up. If the program
 * has unmapped that memory by a raw system call, it may fault; Go never unmaps it.
 *
 * The values may be anything: the stack is the program's, and a frame pointer that was restored by a wrong
 * row, or used as a general register, is a number like any other. It is used only within the bounds. Frames
 * behind a signal frame are not walked, since the signal frame's row is never published; nor are those of a
 * function that counts its frame from another register, or keeps the caller's frame pointer elsewhere than
 * in memory (walked.c, rule_of).
 */
static uintptr_t own_start, own_end; /* of this library */

static struct walk_area *area_of(void)
{
	return place_part(place_view.region.offsets.walk);
}

void walk_open(void)
{
	struct walk_area *area = area_of();
	unsigned char *first = (unsigned char *)area->rows, *end = (unsigned char *)&area->numbers;

	lookup_extent((const void *)(uintptr_t)walk_open, &own_start, &own_end);
	/* A stray store of the program must not change what is read here. If it is refused: no matter. Not
	 * where a larger page of the kernel's would take in what is written beside it (aarch64). */
	if ((((uintptr_t)first | (uintptr_t)end) & (getauxval(AT_PAGESZ) - 1)) == 0)
		(void)memory_protect(first, (size_t)(end - first), PROT_READ);
}

static bool table_find(const struct walk_row *table, size_t entries, uintptr_t pc, struct walk_rule *rule)
{
	size_t at = walk_place_of(pc, entries);

	for (size_t i = 0; i < WALK_PROBES; i++, at = (at + 1) & (entries - 1)) {
		const struct walk_row *row = &table[at];
		uint64_t found = atomic_load_explicit(&row->pc, memory_order_acquire);

		if (found == pc) {
			uint64_t word = atomic_load_explicit(&row->rule, memory_order_acquire);

			__builtin_memcpy(rule, &word, sizeof(word));
			/* The sampler may have emptied the row, and used it for another address, between
			 * these. */
			return atomic_load_explicit(&row->pc, memory_order_relaxed) == pc;
		}
		if (!found)
			return false;
	}
	return false;
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

/* Without the code by which a processor recognizes its own return addresses (PAC). The instruction strips
 * register 30 alone; processors without PAC take it for a nop. */
static inline uintptr_t code_address(uintptr_t word)
{
#if defined(__aarch64__)
	register uintptr_t address __asm__("x30") = word;
	__asm__("hint #7" /* xpaclri */ : "+r"(address));
	return address;
#else
	return word;
#endif
}

/* Goes to the caller's frame. False: it is not within [at->sp, top). The words that are read lie above the
 * stack pointer of the frame that is left, and below the end of the stack. */
static bool step(struct walk_start *at, struct walk_rule rule, uintptr_t top)
{
	uintptr_t cfa =
	    (rule.from_fp ? at->fp : at->sp) + (uintptr_t)(intptr_t)rule.cfa_words * sizeof(uintptr_t);
	uintptr_t ra_at = cfa + (uintptr_t)(intptr_t)rule.ra_words * sizeof(uintptr_t);
	uintptr_t fp_at = cfa + (uintptr_t)(intptr_t)rule.fp_words * sizeof(uintptr_t);

	if (cfa <= at->sp || cfa % sizeof(uintptr_t) || ra_at < at->sp || ra_at > top - sizeof(uintptr_t))
		return false;
	if (rule.fp_words) {
		if (fp_at < at->sp || fp_at > top - sizeof(uintptr_t))
			return false;
		at->fp = word_at(fp_at);
	}
	at->pc = code_address(word_at(ra_at));
	at->sp = cfa;
	return true;
}

/* Where to note the return addresses on the way. */
struct trail {
	uint64_t *frames;
	size_t count, room;
};

/* One more frame. False: there is no room to note it. */
static inline bool add_frame(uintptr_t pc, uint64_t *hash, struct trail *trail)
{
	if (trail && trail->count == trail->room)
		return false;
	if (trail)
		((volatile uint64_t *)trail->frames)[trail->count++] = pc;
	if (pc < own_start || pc >= own_end)
		*hash = walk_hash_step(*hash, pc);
	return true;
}

enum { WORD_BYTES = sizeof(uintptr_t) };

/* From the frame of Go's asmcgocall to the goroutine's stack, whose end is *top then. False: that is not in
 * known memory. */
static bool go_to_goroutine(struct walk_start *at, struct walk_rule rule, uintptr_t *top)
{
	const uintptr_t words = (uintptr_t) - (intptr_t)rule.cfa_words;

	if (at->sp >= *top || at->sp % WORD_BYTES || (*top - at->sp) / WORD_BYTES < words + 2)
		return false;
	const uintptr_t depth = word_at(at->sp + words * WORD_BYTES),
	                goroutine = word_at(at->sp + (words + 1) * WORD_BYTES),
	                known_end = goroutine_memory_end(goroutine);
	if (goroutine % WORD_BYTES || !known_end || known_end - goroutine < 2 * WORD_BYTES)
		return false;
	*top = word_at(goroutine + WORD_BYTES);
	at->sp = *top - depth;
	return depth >= WORD_BYTES && depth <= *top && at->sp % WORD_BYTES == 0 &&
	    goroutine_memory_end(at->sp) >= *top;
}

/* By frame pointers, to the goroutine's first function: its caller's is 0. */
static bool walk_goroutine(
    struct walk_start *at, uintptr_t top, uint32_t depth, uint64_t *hash, struct trail *trail)
{
	for (; at->fp && depth < WALK_FRAMES_MAX; depth++) {
		if (at->fp < at->sp || at->fp % WORD_BYTES || at->fp >= top || top - at->fp < 2 * WORD_BYTES)
			return false;
		at->pc = word_at(at->fp + WORD_BYTES);
		at->sp = at->fp + 2 * WORD_BYTES;
		at->fp = word_at(at->fp);
		if (!at->pc || !add_frame(at->pc, hash, trail))
			return false;
	}
	return !at->fp;
}

/* From asmcgocall's frame on. */
static bool walk_callers_in_go(struct walk_start *at, struct walk_rule rule, uintptr_t top, uint32_t depth,
    uint64_t *hash, struct trail *trail)
{
	if (!go_to_goroutine(at, rule, &top))
		return false;
	if (rule.ra_words == WALK_GO_RECORD)
		at->fp = at->sp;
	else if (!add_frame(word_at(at->sp), hash, trail))
		return false;
	return walk_goroutine(at, top, depth, hash, trail);
}

/* The hash of the stack of those frames that are not this library's; 0: it cannot be walked. *switched: it
 * goes on in a goroutine's stack. Written out for trail == NULL. */
static inline __attribute__((always_inline)) uint64_t hash_of(
    const struct walk_area *area, struct walk_start at, struct trail *trail, bool *switched)
{
	const uintptr_t low = sample_thread.stack_low;
	const uintptr_t top = sample_thread.stack_top;
	uint64_t hash = WALK_HASH_BEGIN, generation, now;
	bool later = later_usable(area, &generation), used_later = false;

	*switched = false;
	if (at.sp < low || at.sp >= top || !low || !at.pc)
		return 0;
	for (uint32_t depth = 0; depth < WALK_FRAMES_MAX; depth++) {
		struct walk_rule rule;

		if (!table_find(area->rows, WALK_ROWS, at.pc, &rule)) {
			if (!later || !table_find(area->later, WALK_LATER_ROWS, at.pc, &rule))
				return 0;
			used_later = true;
		}
		if (!add_frame(at.pc, &hash, trail))
			return 0;
		if (rule.ra_words && !step(&at, rule, top)) {
			if (!walk_is_go_rule(rule) ||
			    !walk_callers_in_go(&at, rule, top, depth + 1, &hash, trail))
				return 0;
			*switched = true;
		}
		if (*switched || !rule.ra_words || !at.pc)
			/* The sampler may have emptied the table meanwhile, and filled it again. */
			return used_later && !(later_usable(area, &now) && now == generation)
			    ? 0
			    : walk_hash_end(hash, used_later ? generation + 1 : 0);
	}
	return 0;
}

struct walk_found walk_stack(struct walk_start start)
{
	struct walk_area *area = area_of();
	struct walk_found found = {.number = 0};

	if (!atomic_load_explicit(&place_header()->walk, memory_order_relaxed) ||
	    place_index() >= WALK_PLACES)
		return found;
	const uint64_t hash = hash_of(area, start, NULL, &found.switched);
	const uint32_t number = hash ? walk_number_take(&area->numbers, hash) : 0;
	if (number && walk_number_use(&area->numbers, number, &found.asked))
		found.number = number;
	return found;
}

size_t walk_frames(struct walk_start start, uint64_t *frames, size_t room)
{
	struct trail trail = {.frames = frames, .room = room};
	bool switched;

	frames[trail.count++] = (uintptr_t)walk_frames + 1;
	return hash_of(area_of(), start, &trail, &switched) ? trail.count : 0;
}

void walk_not_dumped(uint32_t stack)
{
	walk_number_ask_again(&area_of()->numbers, stack);
}

/* A signal handler may have forked since the stack was walked, and this be the child, with another place. */
void walk_count(uint32_t stack, struct weighed weight)
{
	const uint32_t place = place_index();

	if (place >= WALK_PLACES)
		return;
	struct walk_counts *counts = &area_of()->counts[place];
	struct walk_count *count = &counts->count[stack];
	_Atomic uint64_t *changed = &counts->changed[stack / 64];
	one_thread_add(&count->samples, 1);
	one_thread_add(&count->bytes_q8, weight.bytes_q8);
	/* Locked, always: what was added must be seen by whoever clears the bit after it was found set. The
	 * load is no weaker: on aarch64 a relaxed one may pass an exclusive store that is not visible yet. */
	atomic_fetch_add(&count->objects_q16, weight.objects_q16);
	if (!(atomic_load(changed) >> stack % 64 & 1))
		atomic_fetch_or_explicit(changed, 1ull << stack % 64, memory_order_release);
	one_thread_add(&place_self()->walked, 1);
}

bool walk_is_compared(void)
{
	uint64_t one_in = atomic_load_explicit(&place_header()->walk, memory_order_relaxed);

	/* the generator's state is a multiple of an odd number: its upper bits are as good as random */
	return one_in && (sample_thread.random >> 32 & (one_in - 1)) == 0;
}

struct walk_unmapping walk_unmapping(bool image)
{
	const struct walk_unmapping begun = {
	    .key = place_view.region.key, .tid = thread_tid(), .counted = image};
	struct walk_area *area = area_of();

	if (begun.counted) {
		atomic_fetch_add(&area->unmapping, 1);
		atomic_fetch_add(&area->generation, 1);
	}
	return begun;
}

/* Meanwhile a destructor may have forked, and this be the child, which has no call of its own to end here; or
 * another region may be in the place of the one before. Or this has become the image only now (an offer):
 * rows of what has been unmapped may have been published. */
void walk_unmapped(struct walk_unmapping begun, bool image)
{
	if (!image || thread_tid() != begun.tid)
		return;
	if (begun.counted && begun.key == place_view.region.key)
		atomic_fetch_sub(&area_of()->unmapping, 1);
	else
		atomic_fetch_add(&area_of()->generation, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/claim.h"

#include "preload/block.h"
#include "preload/loader_lock.h"
#include "preload/loader_log.h"
#include "preload/mapping.h"
#include "preload/memory.h"
#include "preload/request.h"
#include "preload/sample.h"
#include "preload/sample_clock.h"
#include "preload/slot.h"
#include "preload/tables.h"
#include "preload/thread.h"
#include "preload/walk.h"

#include <errno.h>

_Atomic uint32_t claim_unwiped = CLAIM_EARLY;
_Atomic uint32_t *_Atomic claim_word = &claim_unwiped;

uintptr_t claim_at_mapping;

/* A child inherits its parent's breakpoint. One that was forked before it was set never gets it, so it must
 * copy its stacks itself. */
static bool tapped_at_fork; /* set in the parent before each fork */
static bool tapped_by_fork; /* in the child; false if the libc did not tell us (a raw clone) */

/* The id of the thread that has found that this process is a forked one, if that has been dealt with; 0 from
 * when the libc tells that it is about to fork. */
static _Atomic uint32_t fork_noticed;

/* Of an offer: the page for the word, whether this process was forked before there was a sampler, and its
 * pid; 0: unknown. */
static _Atomic uint32_t *offer_wiped;
static bool offer_child;
static uint32_t offer_pid;

/* The region that is being attached to, or detached from. Another thread may fork at any time: `start` is
 * right whenever `bytes` is not 0. */
static struct {
	void *start;
	_Atomic size_t bytes; /* 0: none is */
} turning;

bool claim_begin(void)
{
	uint32_t early = CLAIM_EARLY;

	return atomic_compare_exchange_strong(&claim_unwiped, &early, CLAIM_ATTACHING);
}

/* The pid comes before the first segment: if we end in between, the sampler knows by it whose that was. */
static void begin_place(uint32_t pid)
{
	place_begin();
	struct region_place *place = place_self();
	place->pid = pid;
	place->start_ns = sample_clock_read_ns();
	loader_log_open();
	request_begin(place);
	slot_grow();
}

void claim_open(const struct claim_setup *setup)
{
	place_open(&setup->place);
	walk_open();
	request_open(place_header()->start_paused == 1);
	begin_place(setup->pid);
	atomic_store(&place_self()->state, PLACE_READY);
	if (setup->wiped) {
		atomic_store(setup->wiped, CLAIM_OPEN);
		claim_word = setup->wiped;
	}
	atomic_store(&claim_unwiped, CLAIM_OPEN);
}

void claim_offer(const struct claim_setup *setup)
{
	place_open(&setup->place);
	offer_wiped = setup->wiped;
	offer_pid = setup->pid;
	atomic_store(&claim_unwiped, CLAIM_OFFERED);
}

/* What the sampler has written before it set the mode. */
static void read_sampler_part(void)
{
	struct region_header *header = place_header();

	place_view.region.key = header->key & ~REGION_KEY_PLACE;
	place_view.region.no_peak = header->no_peak == 1;
	sample_clock_choose((int)header->clock_id);
	header->clock_id = (uint32_t)sample_clock_chosen();
}

/* The first process of the program run takes place 0: whoever made the offer may have ended long ago. */
static bool take_first(void)
{
	uint32_t nobody = 0;

	return atomic_compare_exchange_strong(&place_header()->taken, &nobody, 1);
}

static void tell_first(void)
{
	place_header()->pid = place_self()->pid;
	tables_tell(place_header()); /* a limit may have taken it since the offer */
	atomic_store_explicit(&place_header()->state, REGION_READY, memory_order_release);
}

/* At the first interval that ends after a sampler has set the mode, in whatever thread: that may end long
 * before its process does, and is none that is known outside a pid namespace. Nothing was sampled before, so
 * there is nothing to inherit, and no parent. */
static bool take_offered(void)
{
	uint32_t offered = CLAIM_OFFERED;

	if (atomic_load_explicit(&place_header()->mode, memory_order_acquire) == REGION_MODE_OFF ||
	    !atomic_compare_exchange_strong(&claim_unwiped, &offered, CLAIM_TAKING))
		return false;
	read_sampler_part();
	slot_reset(); /* this process may have been forked while a thread of its parent's was here */
	const bool first = take_first();
	if (!first && !place_take()) {
		claim_close();
		return false;
	}
	begin_place(offer_pid ? offer_pid : thread_tid());
	if (first) {
		atomic_store(&place_self()->state, PLACE_READY);
		tell_first();
	} else if (place_ready()) {
		atomic_fetch_add(&place_header()->places_claimed, 1);
	} else {
		claim_close();
		return false;
	}
	if (offer_wiped) {
		atomic_store(offer_wiped, CLAIM_OPEN);
		claim_word = offer_wiped;
	}
	atomic_store(&claim_unwiped, CLAIM_OPEN);
	return true;
}

/* Not in the wiped page: a child that is forked later must stay closed too. */
void claim_close(void)
{
	atomic_store(&claim_unwiped, CLAIM_CLOSED);
	claim_word = &claim_unwiped;
}

void claim_detach(void)
{
	atomic_store(&claim_unwiped, CLAIM_DETACHED);
	claim_word = &claim_unwiped;
}

static bool inherit(const void *pointer, struct live_entry *entry)
{
	return block_inherit(pointer, entry);
}

/* At the first sampled event of a forked child. Its other threads (rare, since pthread_create comes here
 * first) see CLAIM_CLAIMING and take no samples meanwhile. */
static void claim(void)
{
	const uint32_t parent = place_index(), generation = place_view.generation;

	slot_reset();
	if (!place_take()) {
		claim_close();
		return;
	}
	place_view.tapped = tapped_by_fork;
	tapped_by_fork = false;
	place_self()->parent = parent + 1;
	place_self()->parent_generation = generation;
	begin_place(thread_tid());
	sample_reseed(thread_tid(), sample_clock_read_ns());
	live_visit(inherit);
	mapping_inherit();
	if (!place_ready()) {
		claim_close();
		return;
	}
	atomic_fetch_add(&place_header()->places_claimed, 1);
	uint32_t claiming = CLAIM_CLAIMING; /* unless another thread has closed it meanwhile */
	if (atomic_compare_exchange_strong(atomic_load(&claim_word), &claiming, CLAIM_OPEN))
		request_resume(place_header(), place_self());
}

bool claim_place(void)
{
	if (claim_state() == CLAIM_OFFERED)
		return take_offered();
	/* Read before the state is: the parent's, as long as that is CLAIM_FORKED. Who frees a block while
	 * another thread claims, or in a signal handler, must not find the parent's slots its own. */
	const uint16_t tag = place_tag();
	if (claim_state() != CLAIM_FORKED)
		return false;
	place_disown(tag);
	uint32_t forked = CLAIM_FORKED;
	if (!atomic_compare_exchange_strong(atomic_load(&claim_word), &forked, CLAIM_CLAIMING))
		return false;
	claim();
	return claim_state() == CLAIM_OPEN;
}

/* The program run's own process keeps what it had: there is nothing of anybody else's in it. (Of children,
 * only what they have done since the fork.) mmap is what the loader has used under whatever filter is in
 * force since the start; of a filter that the child itself installed before, nothing is known
 * (SECURITY.md). */
void claim_user_changed(void)
{
	int saved = errno;

	sample_enter();
	if (atomic_load(&claim_word) == &claim_unwiped) /* _Fork calls no hook */
		claim_look_for_fork();
	enum claim_state now = claim_state();
	const bool child = now == CLAIM_FORKED || now == CLAIM_CLAIMING ||
	    ((now == CLAIM_OFFERED || now == CLAIM_TAKING) && offer_child) ||
	    ((now == CLAIM_OPEN || now == CLAIM_CLOSED) && place_view.header &&
	        (offer_child || place_index() != 0));
	if (child && !place_drop_buffers())
		claim_close();
	sample_leave();
	errno = saved;
}

void claim_turning(void *start, size_t bytes)
{
	atomic_store(&turning.bytes, 0);
	if (!bytes)
		return;
	turning.start = start;
	atomic_store(&turning.bytes, bytes);
}

/* Of a region that is not open the child uses nothing, ever. */
static void hide_turning(void)
{
	const int saved = errno;
	const uint32_t now = atomic_load(&claim_unwiped);
	const bool open = now == CLAIM_OPEN || now == CLAIM_FORKED;

	if (open && !place_drop_buffers())
		claim_close();
	if (!open)
		(void)memory_cover(turning.start, turning.bytes);
	turning.bytes = 0;
	errno = saved;
}

void claim_forking(void)
{
	sample_enter();
	if (claim_state() == CLAIM_OPEN)
		tapped_at_fork = place_tapped();
	sample_leave();
	sample_thread.tid = thread_tid(); /* of one that has not allocated yet too */
	atomic_store(&fork_noticed, 0);
}

/* Does not claim a place: most children execute another program at once and need none. If another thread was
 * taking or claiming one, it does not here. */
static void forked(uint32_t tid)
{
	const uint32_t now = atomic_load(&claim_unwiped);

	if (now == CLAIM_OFFERED || now == CLAIM_TAKING) {
		offer_child = true;
		offer_pid = tid; /* the only thread's */
		atomic_store(&claim_unwiped, CLAIM_OFFERED);
		sample_forked(tid, sample_clock_read_ns());
	} else if (now == CLAIM_OPEN || now == CLAIM_CLAIMING) {
		tapped_by_fork = tapped_at_fork;
		claim_at_mapping = 1;
		if (claim_word == &claim_unwiped)
			atomic_store(&claim_unwiped, CLAIM_FORKED);
		sample_forked(tid, sample_clock_read_ns());
	}
	sample_thread.tid = tid;
}

/* Where clone() shares the memory, glibc notes -1 before 2.25: that is no fork. */
void claim_look_for_fork(void)
{
	const uint32_t tid = thread_tid();

	if (sample_thread.tid && sample_thread.tid != tid && tid <= INT32_MAX &&
	    atomic_exchange(&fork_noticed, tid) != tid)
		forked(tid);
}

void claim_forked(void)
{
	const uint32_t tid = thread_tid();

	loader_lock_forked(sample_thread.tid);
	if (atomic_exchange(&fork_noticed, tid ? tid : UINT32_MAX) == 0)
		forked(tid);
	if (turning.bytes)
		hide_turning();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/request.h"

#include "preload/place.h"
#include "preload/signal.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic uint32_t paused;

void request_open(bool start_paused)
{
	atomic_store(&paused, start_paused ? 1 : 0);
}

void request_begin(struct region_place *place)
{
	atomic_store(&place->paused, atomic_load(&paused));
	atomic_store(&place->paused_since_ns, place->start_ns);
	atomic_store(&place->signal_handled, signal_handled() ? 1 : 0);
}

bool request_paused(void)
{
	return atomic_load_explicit(&paused, memory_order_relaxed) != 0;
}

void request_pause(bool pause)
{
	uint32_t want = pause ? 1 : 0;
	if (atomic_exchange(&paused, want) == want || !place_ready())
		return;
	struct region_place *place = place_self();
	uint64_t now = place_now_ns();
	if (pause)
		atomic_store(&place->paused_since_ns, now);
	else
		atomic_fetch_add(&place->paused_ns, now - atomic_load(&place->paused_since_ns));
	atomic_store(&place->paused, want);
}

static void say_so(void)
{
	atomic_fetch_add(&place_header()->requests, 1);
}

void request_signalled(void)
{
	if (!place_ready())
		return;
	atomic_fetch_add(&place_self()->signals, 1);
	say_so();
}

_Atomic uint32_t *request_ask(const char *name, uint32_t *number)
{
	static _Atomic uint32_t asking;
	if (!place_ready() || atomic_exchange(&asking, 1))
		return NULL;
	struct region_place *place = place_self();
	size_t length = 0;
	for (; name && name[length] && length < REGION_NAME_BYTES - 1; length++)
		place->asked_name[length] = name[length];
	place->asked_name[length] = '\0';
	*number = atomic_fetch_add(&place->asked, 1) + 1;
	say_so();
	atomic_store(&asking, 0);
	return &place->answered;
}

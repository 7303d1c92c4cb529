/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/request.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic uint32_t paused;
static _Atomic uint32_t postponed;

void request_open(bool start_paused)
{
	atomic_store(&paused, start_paused ? 1 : 0);
}

void request_begin(struct region_place *place)
{
	atomic_store(&place->paused, atomic_load(&paused));
	atomic_store(&place->paused_since_ns, place->start_ns);
}

bool request_paused(void)
{
	return atomic_load_explicit(&paused, memory_order_relaxed) != 0;
}

void request_pause(struct region_place *place, uint64_t now_ns, bool pause)
{
	uint32_t want = pause ? 1 : 0;

	if (atomic_exchange(&paused, want) == want || !place)
		return;
	if (pause)
		atomic_store(&place->paused_since_ns, now_ns);
	else
		atomic_fetch_add(&place->paused_ns, now_ns - atomic_load(&place->paused_since_ns));
	atomic_store(&place->paused, want);
}

void request_signalled(struct region_header *header, struct region_place *place)
{
	atomic_fetch_add(&place->signals, 1);
	atomic_fetch_add(&header->requests, 1);
}

void request_postpone(void)
{
	atomic_store(&postponed, 1);
}

void request_resume(struct region_header *header, struct region_place *place)
{
	if (atomic_exchange(&postponed, 0))
		request_signalled(header, place);
}

_Atomic uint32_t *request_snapshot(
    struct region_header *header, struct region_place *place, const char *name, uint32_t *number)
{
	static _Atomic uint32_t asking;

	if (atomic_exchange(&asking, 1))
		return NULL;
	size_t length = 0;
	for (; name && name[length] && length < REGION_NAME_BYTES - 1; length++)
		place->asked_name[length] = name[length];
	place->asked_name[length] = '\0';
	*number = atomic_fetch_add(&place->asked, 1) + 1;
	atomic_fetch_add(&header->requests, 1);
	atomic_store(&asking, 0);
	return &place->answered;
}

bool request_refused(const struct region_place *place, uint32_t number)
{
	uint64_t refused = atomic_load(&place->refused);
	uint32_t first = (uint32_t)(refused >> 32), last = (uint32_t)refused;

	return refused && number - first <= last - first;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/last_level.h"

#include "preload/live.h"
#include "preload/lock_all.h"
#include "preload/memory.h"
#include "preload/place.h"
#include "preload/seccomp_filter.h"
#include "preload/session.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

static unsigned char *start;
static uint64_t mapped_bytes;
static _Atomic bool tried; /* for this region */

/* Takes an eighth of a limit at most. munlock is a call that no allocator makes: a filter that we do not know
 * of may punish it. */
static unsigned char *map(uint64_t bytes)
{
	if (!session_affordable_later(2 * bytes, 2 * bytes))
		return NULL;
	const bool locks = lock_all_was_called(), lazily = locks && memory_map_lazily(true);
	unsigned char *memory = memory_map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (locks)
		memory_map_lazily(lazily);
	if (memory) {
		madvise(memory, bytes, MADV_NOHUGEPAGE); /* one touched byte must not take 2 MiB */
		madvise(memory, bytes, MADV_DONTDUMP);
	}
	return memory;
}

void last_level_open(void)
{
	atomic_store(&tried, false);
}

bool last_level_add(void)
{
	const int saved = errno;
	const uint64_t bytes = live_last_bytes();

	if (!bytes || seccomp_filter_is_noted() || atomic_exchange(&tried, true))
		return false;
	unsigned char *memory = map(bytes);
	errno = saved;
	if (!memory)
		return false;
	start = memory;
	mapped_bytes = bytes;
	lock_all_leave_out(LOCK_ALL_LAST_LEVEL, memory, bytes);
	live_add_last(memory);
	if (place_index() == 0) {
		place_header()->grown_start = (uintptr_t)memory;
		place_header()->grown_end = (uintptr_t)memory + bytes;
	}
	return true;
}

uint64_t last_level_bytes(uintptr_t *where)
{
	*where = (uintptr_t)start;
	return mapped_bytes;
}

void last_level_close(void)
{
	if (mapped_bytes)
		memory_unmap(start, mapped_bytes);
	start = NULL;
	mapped_bytes = 0;
	lock_all_leave_out(LOCK_ALL_LAST_LEVEL, NULL, 0);
}

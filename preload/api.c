/* SPDX-License-Identifier: Apache-2.0 */
/* The library's side of heaptap.h: one exported table. The program itself calls these functions, so they may
 * wait, for a limited time. */
#include "proto/heaptap.h"

#include "preload/claim.h"
#include "preload/request.h"
#include "preload/sample_clock.h"
#include "preload/slow_path.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>

enum {
	WAIT_NS = 100 * 1000000,
	WAITS = 20, /* 2 s: a loaded machine took more than 300 ms */
};

/* Whether one request comes after another, which may have wrapped around. */
static bool is_after(uint32_t number, uint32_t other)
{
	return (int32_t)(number - other) > 0;
}

/* After a request that has been waited for in vain, later calls do not wait until that one is answered. A
 * forked child counts from 1 in a place of its own, and knows by the numbers that it is its parent's. */
static int ask(const char *name)
{
	static _Atomic uint32_t in_vain; /* the number of that request; 0: none */
	uint32_t number, now;
	int saved = errno;
	/* Where no sampler wants samples, nobody answers either. */
	bool sampled = claim_ready() && atomic_load(&place_header()->mode) != REGION_MODE_OFF;
	_Atomic uint32_t *answered =
	    sampled ? request_snapshot(place_header(), place_self(), name, &number) : NULL;

	if (!answered)
		return 0;
	const uint32_t missed = atomic_load(&in_vain);
	const bool may_wait = !is_after(missed, atomic_load(answered)) || !is_after(number, missed);
	int waits = may_wait ? WAITS : 0;
	while ((now = atomic_load(answered), is_after(number, now)) && waits-- > 0) {
		struct timespec limit = {.tv_nsec = WAIT_NS};

		syscall(SYS_futex, answered, FUTEX_WAIT, now, &limit, NULL, 0);
	}
	const bool done = !is_after(number, now);
	if (!done && may_wait)
		atomic_store(&in_vain, number);
	errno = saved;
	return done && !request_refused(place_self(), number);
}

static int api_snapshot(const char *name)
{
	sample_enter();
	const int done = ask(name);
	sample_leave();
	return done;
}

static void set_paused(bool pause)
{
	sample_enter();
	request_pause(claim_ready() ? place_self() : NULL, sample_clock_read_ns(), pause);
	sample_leave();
}

static void api_start(void)
{
	set_paused(false);
}

static void api_stop(void)
{
	set_paused(true);
}

static void api_report_alloc(const void *pointer, size_t bytes)
{
	/* No block has an address in the first page, or in the last: there is MAP_FAILED. */
	if ((uintptr_t)pointer >= REGION_PAGE_BYTES && (uintptr_t)pointer < -(uintptr_t)REGION_PAGE_BYTES &&
	    sample_count(bytes))
		slow_path_alloc(pointer, bytes);
}

static void api_report_free(void *pointer, size_t bytes)
{
	slow_path_free(pointer);
}

extern const struct heaptap_api heaptap_api;
__attribute__((visibility("default"))) const struct heaptap_api heaptap_api = {
    .version = 1,
    .snapshot = api_snapshot,
    .start = api_start,
    .stop = api_stop,
    .report_alloc = api_report_alloc,
    .report_free = api_report_free,
};

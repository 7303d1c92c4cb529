/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/memory_bound.h"

#include "pprof/text/log_line.h"

#include <inttypes.h>
#include <unistd.h>

#define DEFAULT_BYTES    (UINT64_C(1) << 30)
#define ALPHA            3 /* an account may hold so many times what is free: see memory_bound.h */
#define ROOM_LEAST_BYTES (UINT64_C(64) << 10) /* the maps of a program with 300 libraries */

uint64_t memory_bound_bytes(uint64_t rss_max_bytes)
{
	if (rss_max_bytes)
		return rss_max_bytes / 2;
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t quarter = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes / 4 : 0;
	return quarter && quarter < DEFAULT_BYTES ? quarter : DEFAULT_BYTES;
}

/* The row that counts the share's account; MEMORY_ACCOUNTS + 1 if the share holds nothing. */
static uint32_t find_row(const struct memory_bound *bound, uint64_t account)
{
	for (uint32_t i = 0; i < MEMORY_ACCOUNTS; i++)
		if (bound->accounts[i].shares && bound->accounts[i].account == account)
			return i;
	return MEMORY_ACCOUNTS + 1;
}

static uint32_t make_row(struct memory_bound *bound, uint64_t account)
{
	uint32_t row = find_row(bound, account);

	if (row <= MEMORY_ACCOUNTS)
		return row;
	for (row = 0; row < MEMORY_ACCOUNTS && bound->accounts[row].shares;)
		row++;
	bound->accounts[row].account = account;
	return row;
}

static uint64_t account_bytes(const struct memory_bound *bound, const struct memory_share *share)
{
	const uint32_t row = share->held_bytes ? share->row : find_row(bound, share->account);

	return row <= MEMORY_ACCOUNTS ? bound->accounts[row].held_bytes : 0;
}

bool memory_bound_allows(const struct memory_bound *bound, const struct memory_share *share)
{
	if (!bound->max_bytes)
		return true;
	const uint64_t free_bytes =
	    bound->held_bytes < bound->max_bytes ? bound->max_bytes - bound->held_bytes : 0;
	return (ALPHA + 1) * share->held_bytes + account_bytes(bound, share) < ALPHA * free_bytes;
}

/* The largest x with (alpha + 1) x + (account + x) <= alpha (free - x). */
uint64_t memory_bound_room(
    const struct memory_bound *bound, const struct memory_share *share, uint64_t own_bytes)
{
	const uint64_t others = bound->held_bytes > own_bytes ? bound->held_bytes - own_bytes : 0,
	               free_bytes = others < bound->max_bytes ? bound->max_bytes - others : 0,
	               all = account_bytes(bound, share), of_account = all > own_bytes ? all - own_bytes : 0,
	               room = ALPHA * free_bytes > of_account
	    ? (ALPHA * free_bytes - of_account) / (2 * ALPHA + 2)
	    : 0;

	return !bound->max_bytes ? 0 : room > ROOM_LEAST_BYTES ? room : ROOM_LEAST_BYTES;
}

void memory_share_note(struct memory_share *share, struct memory_bound *bound, uint64_t now_bytes)
{
	if (!share->held_bytes && now_bytes) {
		share->row = make_row(bound, share->account);
		bound->accounts[share->row].shares++;
	}
	if (share->held_bytes && !now_bytes)
		bound->accounts[share->row].shares--;
	if (share->held_bytes || now_bytes)
		bound->accounts[share->row].held_bytes += now_bytes - share->held_bytes;
	bound->held_bytes += now_bytes - share->held_bytes;
	share->held_bytes = now_bytes;
}

void memory_share_belongs(struct memory_share *share, struct memory_bound *bound, uint64_t account)
{
	const uint64_t bytes = share->held_bytes;

	if (bytes)
		memory_share_note(share, bound, 0); /* without a bound nothing is counted */
	share->account = account;
	if (bytes)
		memory_share_note(share, bound, bytes);
}

void memory_bound_say(struct memory_bound *bound)
{
	if (!bound->refused || bound->said)
		return;
	bound->said = true;
	log_line("stacks take %" PRIu64 " of %" PRIu64
	         " MiB: new ones of the largest processes and users are counted as lost",
	    bound->held_bytes >> 20, bound->max_bytes >> 20);
}

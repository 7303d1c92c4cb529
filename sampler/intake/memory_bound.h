/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of all processes' books together, in shares: one for each process, and each counts as its
 * account's (a user, a unit, a container), for a user may have as many processes as he likes.
 *
 * A share of s bytes may grow while 4 s + a < 3 f, where a is what its account holds and f what is free.
 * So n shares of one account that want all they can get end with 3/(4 n + 4) of the memory each, and a
 * quarter of it stays for the other accounts however many they are; n accounts with a share each end with
 * 3/(3 n + 5). As tables grow by no more than their own size at a time, the sum stays below the bound,
 * and a + s < 3 (f - s) after each step: whoever comes later still finds room, in the same account as
 * long as no other grows. (Dynamic thresholds, where what is free is the measure of what one may have:
 * Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM
 * Transactions on Networking 6(2), 1998.)
 */
#ifndef SAMPLER_INTAKE_MEMORY_BOUND_H
#define SAMPLER_INTAKE_MEMORY_BOUND_H

#include <stdbool.h>
#include <stdint.h>

/* Accounts that hold memory; further ones are counted as one account. */
enum { MEMORY_ACCOUNTS = 256 };

/* All zero, but for max_bytes. */
struct memory_bound {
	uint64_t max_bytes;  /* 0: no bound */
	uint64_t held_bytes; /* by all processes */
	uint64_t refused;    /* samples whose stack or row had no room */
	bool said;           /* the user was told that samples are refused */
	struct memory_account {
		uint64_t account, held_bytes;
		uint32_t shares;         /* shares that hold memory; 0: the row is free */
	} accounts[MEMORY_ACCOUNTS + 1]; /* the last row: all accounts without one */
};

/* The memory that one process holds. All zero at first. */
struct memory_share {
	uint64_t account; /* any number, set by memory_share_belongs() */
	uint64_t held_bytes;
	uint32_t row; /* in `accounts`, while the share holds memory */
};

/* The bound for a sampler that may have rss_max_bytes: half of that, for a snapshot takes up to as much
 * again for a while. Without a limit (0): 1 GiB, or a quarter of the machine's memory if that is less. */
uint64_t memory_bound_bytes(uint64_t rss_max_bytes);

/* Whether the share may grow. */
bool memory_bound_allows(const struct memory_bound *bound, const struct memory_share *share);

/* How many bytes a process may use for what it needs in any case, such as its maps. own_bytes: the rest of
 * its share. The room is as large as other books may grow to, and never smaller than an ordinary process
 * needs. 0: no bound. */
uint64_t memory_bound_room(
    const struct memory_bound *bound, const struct memory_share *share, uint64_t own_bytes);

/* The share is now_bytes large now. */
void memory_share_note(struct memory_share *share, struct memory_bound *bound, uint64_t now_bytes);

/* The share belongs to that account from now on, with what it holds already. bound may be NULL if it holds
 * nothing. */
void memory_share_belongs(struct memory_share *share, struct memory_bound *bound, uint64_t account);

/* Tells the user, once, that samples are refused. */
void memory_bound_say(struct memory_bound *bound);

#endif

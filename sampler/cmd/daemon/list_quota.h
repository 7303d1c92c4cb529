/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the daemon's list the rows of one user may take. The first process of each program run
 * always has a row, since the number of program runs is limited (policy_match_has_room()). The numbers of
 * forked children and of refused processes are not: without a quota the list could become too long for
 * anybody to read. Rows that are left out are counted. Pure.
 */
#ifndef SAMPLER_CMD_DAEMON_LIST_QUOTA_H
#define SAMPLER_CMD_DAEMON_LIST_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { LIST_QUOTA_USERS = 256 }; /* all users beyond have one quota together */

/* Zeroed but for most_bytes. */
struct list_quota {
	size_t most_bytes; /* of one user; a row that begins below is written whole */
	size_t count;
	struct list_quota_user {
		uid_t uid;
		size_t bytes;
	} users[LIST_QUOTA_USERS];
	uint64_t left_out; /* rows */
};

/* Whether one more row of the user may be written. If not, the row is counted as left out. */
bool list_quota_allows(struct list_quota *share, uid_t uid);
void list_quota_take(struct list_quota *share, uid_t uid, size_t bytes);

#endif

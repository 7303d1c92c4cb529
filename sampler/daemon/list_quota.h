/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the daemon's list one user's rows may take. The first process of each image has its row in
 * any case, for there is a bound on images (decisions.h); on forked children, and on those that are
 * refused, there is none, and a list that does not fit would be nobody's. What is left out is counted.
 * Pure.
 */
#ifndef SAMPLER_DAEMON_LIST_QUOTA_H
#define SAMPLER_DAEMON_LIST_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { LIST_QUOTA_USERS = 256 }; /* who is beyond shares one share with all such */

/* Zeroed but for most_bytes. */
struct list_quota {
	size_t most_bytes; /* of one user: a row is begun below it */
	size_t count;
	struct list_quota_user {
		uid_t uid;
		size_t bytes;
	} users[LIST_QUOTA_USERS];
	uint64_t left_out; /* rows */
};

/* Whether one more row of the user may be written; else it is counted. */
bool list_quota_allows(struct list_quota *share, uid_t uid);
void list_quota_take(struct list_quota *share, uid_t uid, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of one account or user may take of the daemon, so that others find room:
 *
 *   program runs that are profiled   an account has half of them
 *   profiles of ended processes      how many may wait until they are written
 *   rows of the daemon's list        a user has a number of bytes
 */
#ifndef SAMPLER_CMD_DAEMON_ACCOUNT_SHARE_H
#define SAMPLER_CMD_DAEMON_ACCOUNT_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon;
struct process_facts;
struct target;

/* Whether one more program run of such a process may be profiled: program runs have their share of our
 * memory, and accounts (a login user, a system unit, a container) have half of that each. Root in a
 * container is no exception. */
bool account_share_has_run(const struct daemon *daemon, const struct process_facts *facts);

/* ---- profiles of ended processes */

/*
 * What the daemon may have, and what waits already. A process that has ended keeps its shared memory, its
 * books and some descriptors until its last profile is written. On a machine where programs start and end all
 * day, a slow writer would take what the living processes need. Profiles over the limit are dropped and
 * counted (write/heap_source.h).
 */
struct account_share_waiting {
	uint64_t memory_bytes;                 /* the daemon's limit */
	uint64_t descriptors;                  /* the daemon's limit */
	uint64_t books_bytes, books_max_bytes; /* of all processes, the living ones included */
	uint64_t waiting;                      /* processes */
	uint64_t of_account; /* of these, with the account (target_account()) of the process that has ended */
	uint64_t of_service; /* of these, with its service */
	bool killed;         /* it was ended by a signal */
};

/* Whether one more process may wait. Pure. One service may have three quarters of the room, so that others
 * find some. This does not hold for a process that was killed, for its profile is wanted most. But
 * processes choose their names and how they end: so an account leaves an eighth to the others in any case. */
bool account_share_has_wait(const struct account_share_waiting *share);

/* The same for struct scheduler_setup. */
bool account_share_may_wait(void *context, const struct target *target);

/* ---- rows of the list */

enum { ACCOUNT_SHARE_USERS = 256 }; /* all users beyond have one share together */

/*
 * How much of the daemon's list the rows of one user may take. The first process of each program run always
 * has a row, since the number of program runs is limited (account_share_has_run()). The numbers of forked
 * children and of refused processes are not: without a limit the list could become too long for anybody to
 * read. Rows that are left out are counted. Zeroed but for most_bytes.
 */
struct account_share_rows {
	size_t most_bytes; /* of one user; a row that begins below is written whole */
	size_t count;
	struct account_share_user {
		uid_t uid;
		size_t bytes;
	} users[ACCOUNT_SHARE_USERS];
	uint64_t left_out; /* rows */
};

/* Whether one more row of the user may be written. If not, the row is counted as left out. Pure. */
bool account_share_has_row(struct account_share_rows *share, uid_t uid);

/* The user's row took so many bytes. Pure. */
void account_share_take_row(struct account_share_rows *share, uid_t uid, size_t bytes);

#endif

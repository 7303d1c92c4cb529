/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/account_share.h"

#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/process_facts.h"
#include "sampler/intake/target_plan.h"
#include "sampler/write/end_phrase.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- program runs */

/* A program run takes 20 to 100 KiB of the daemon's memory, and the pages that were made for it in
 * advance. */
enum { RUN_BYTES = 128 << 10 };

/* Is it a process of the user who runs the daemon? That user need not share with himself. If that is root,
 * the processes of containers and units are not his own. */
static bool is_own(const struct process_facts *facts, const char *account)
{
	return facts->uid == geteuid() && (facts->uid != 0 || strcmp(account, "uid-0") == 0);
}

/* Program runs are counted, not processes: a child keeps the program run of its parent when the parent has
 * ended. */
bool account_share_has_run(const struct daemon *d, const struct process_facts *facts)
{
	const uint64_t most = d->rules->daemon.memory_bytes / RUN_BYTES;
	char account[TARGET_OWNER_BYTES];
	uint64_t of_account = 0;

	process_facts_account(facts, account, sizeof(account));
	books_each_run(run, &d->core.heap.intake.books) of_account +=
	    run->plan && strcmp(run->plan->account, account) == 0;
	return d->core.heap.intake.books.runs.count < most &&
	    (of_account < most / 2 || is_own(facts, account));
}

/* ---- profiles of ended processes */

enum {
	/* A process that waits takes 60 to 110 KiB of our memory, and 230 KiB or more of shared memory. */
	EACH_BYTES = 512 << 10,
	EACH_DESCRIPTORS = 8, /* it has three to five; living processes need some too */
	LEAST = 16,           /* so many may always wait: the smallest daemon has room for them */
};

bool account_share_has_wait(const struct account_share_waiting *share)
{
	uint64_t most = share->memory_bytes / EACH_BYTES;

	if (most > share->descriptors / EACH_DESCRIPTORS)
		most = share->descriptors / EACH_DESCRIPTORS;
	if (most < LEAST)
		most = LEAST;
	/* Few may wait when the books of all processes take most of what they may. */
	if (share->books_bytes > share->books_max_bytes / 4 * 3)
		most = LEAST;
	return share->waiting < most && share->of_account < most - most / 8 &&
	    (share->killed || share->of_service < most - most / 4);
}

static const char *service_of(const struct target *target)
{
	return target->plan ? target->plan->service : target->title;
}

bool account_share_may_wait(void *context, const struct target *target)
{
	const struct daemon *d = ((const struct core *)context)->command;
	const uint64_t account = target_account(target);
	struct rlimit files = {.rlim_cur = RLIM_INFINITY};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	struct account_share_waiting share = {
	    .memory_bytes = d->rules->daemon.memory_bytes,
	    .descriptors = files.rlim_cur,
	    .books_bytes = d->core.memory.held_bytes,
	    .books_max_bytes = d->core.memory.max_bytes,
	    .killed = end_phrase_alarm(target) == END_PHRASE_KILLED,
	};
	books_each_process (process, &d->core.heap.intake.books) {
		const struct target *other = &process->target;

		if (!scheduler_is_closing(other))
			continue;
		share.waiting++;
		share.of_account += target_account(other) == account;
		share.of_service += strcmp(service_of(other), service_of(target)) == 0;
	}
	return account_share_has_wait(&share);
}

/* ---- rows of the list */

static struct account_share_user *user_of(struct account_share_rows *share, uid_t uid)
{
	for (size_t i = 0; i < share->count; i++)
		if (share->users[i].uid == uid)
			return &share->users[i];
	if (share->count == ACCOUNT_SHARE_USERS)
		return &share->users[ACCOUNT_SHARE_USERS - 1];
	share->users[share->count] = (struct account_share_user){.uid = uid};
	return &share->users[share->count++];
}

bool account_share_has_row(struct account_share_rows *share, uid_t uid)
{
	const bool allowed = user_of(share, uid)->bytes < share->most_bytes;

	share->left_out += !allowed;
	return allowed;
}

void account_share_take_row(struct account_share_rows *share, uid_t uid, size_t bytes)
{
	user_of(share, uid)->bytes += bytes;
}

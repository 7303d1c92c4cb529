/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/policy_recheck.h"

#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/periods.h"
#include "sampler/cmd/daemon/policy_match.h"
#include "sampler/intake/region_mapped.h"
#include "sampler/intake/region_offer.h"
#include "sampler/intake/target_plan.h"

#include <stdlib.h>

static struct program_run *run_of(const struct daemon *d, const struct process_entry *entry)
{
	return entry->state == PROCESS_PROFILED ? books_run_of_region(&d->core.heap.intake.books, entry->ino)
	                                        : NULL;
}

static void recheck_profiled(struct daemon *d, struct process_entry *entry, struct program_run *run)
{
	struct policy_match *match = policy_match_make(d, entry, true);

	if (!match || region_mapped_by(run->region, entry->pid) == REGION_MAPPED_NO) {
		free(match); /* the process is gone, or has executed a program without this region */
		return;
	}
	if (run->plan)
		run->plan->decided = d->policy_checks;
	if (policy_match_refuses(d, entry, match)) {
		region_offer_turn(run->region, false);
		entry->state = PROCESS_PROFILED; /* its books stay; entry->reason says why sampling is off */
	} else {
		if (run->plan)
			policy_match_plan(run->plan, d, match);
		process_entry_set(&entry->reason, NULL);
		region_offer_turn(run->region, !d->off.off);
	}
	free(match);
}

void policy_recheck_one(struct daemon *d, struct process_entry *entry)
{
	struct program_run *run = run_of(d, entry);

	if (run)
		recheck_profiled(d, entry, run);
}

/* For a program run whose first process has ended, the rules are asked about any process that is left. */
static void recheck_children(struct daemon *d)
{
	for (size_t i = 0; i < d->processes.count; i++) {
		struct program_run *run = run_of(d, d->processes.entries[i]);

		if (run && run->plan && run->plan->decided != d->policy_checks)
			recheck_profiled(d, d->processes.entries[i], run);
	}
}

void policy_recheck_all(struct daemon *d)
{
	d->policy_checks++;
	for (size_t i = 0; i < d->processes.count; i++) {
		struct process_entry *entry = d->processes.entries[i];
		struct program_run *run = run_of(d, entry);

		if (run && entry->first)
			recheck_profiled(d, entry, run);
		else if (!run && entry->state != PROCESS_NEW && entry->state != PROCESS_ATTACHING) {
			entry->state = PROCESS_NOT_YET;
			entry->looks = entry->looks ? entry->looks - 1 : 0;
		}
	}
	recheck_children(d);
	periods_scale(d);
	finder_hurry(d->finder);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whose periodic snapshot is taken next, when more are due than the writer has room for. */
#include "sampler/snapshot/scheduler_state.h"
#include "sampler/target/target.h"

enum {
	/* Early snapshots of all processes together: fifty processes that begin at once have all of theirs, a
	 * crowd of short-lived ones writes no more than this. */
	EARLY_BURST = 256,
	EARLY_EACH_NS = 1000 * 1000000,
};

struct snapshot_series *scheduler_next_in_turn(const struct scheduler *scheduler)
{
	struct snapshot_series *found = NULL;
	uint64_t full = 0; /* an account for which there is no room */
	bool one_is_full = false;

	for (struct snapshot_series *series = scheduler->series; series; series = series->next_series) {
		if (!series->waiting || series->writing || series->target->closed ||
		    (found && series->turn >= found->turn))
			continue;
		const uint64_t account = target_account(series->target);
		if (one_is_full && account == full)
			continue;
		if (writer_can_start(scheduler->writer, account)) {
			found = series;
		} else {
			one_is_full = true;
			full = account;
		}
	}
	return found;
}

bool scheduler_allows_early(struct scheduler *scheduler, uint64_t now_ns)
{
	if (scheduler->early_until_ns < now_ns)
		scheduler->early_until_ns = now_ns;
	if (scheduler->early_until_ns - now_ns > (uint64_t)(EARLY_BURST - 1) * EARLY_EACH_NS)
		return false;
	scheduler->early_until_ns += EARLY_EACH_NS;
	return true;
}

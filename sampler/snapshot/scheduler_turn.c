/* SPDX-License-Identifier: Apache-2.0 */
/* Whose periodic snapshot is taken next, when more are due than the writer has room for. */
#include "sampler/snapshot/scheduler_state.h"
#include "sampler/target/target.h"

struct snapshot_series *scheduler_next_in_turn(const struct scheduler *a)
{
	struct snapshot_series *found = NULL;
	uint64_t full = 0; /* an account for which there is no room */
	bool one_is_full = false;
	for (struct snapshot_series *series = a->series; series; series = series->next_series) {
		if (!series->waiting || series->writing || series->target->closed ||
		    (found && series->turn >= found->turn))
			continue;
		const uint64_t account = target_account(series->target);
		if (one_is_full && account == full)
			continue;
		if (writer_can_start(a->writer, account)) {
			found = series;
		} else {
			one_is_full = true;
			full = account;
		}
	}
	return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/process_losses.h"

size_t process_losses(const struct process *process, struct control_loss losses[PROCESS_LOSSES])
{
	const struct region_place *place = region_place(process->image->region, process->place);
	const uint64_t counted = process_samples(process), arrived = heap_total(process->heap).samples;
	size_t count = 0;

	if (!process->image->adopting && counted > arrived)
		losses[count++] = (struct control_loss){"stack", counted - arrived};
	for (uint32_t i = 0; i < REGION_LOSS_COUNT; i++) {
		const struct tally lost = region_read_tally(&place->lost[i]);

		if (lost.samples)
			losses[count++] =
			    (struct control_loss){region_loss_name((enum region_loss)i), lost.samples};
	}
	if (process->counters.before_restart)
		losses[count++] =
		    (struct control_loss){"stack before restart", process->counters.before_restart};
	return count;
}

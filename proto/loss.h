/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a sample or its stack is missing: the causes that the target counts, by place (region_place.lost). A
 * new cause is a row here and in the switch below, and a tally_lost() where the loss happens. Losses in the
 * sampler are enum unwind_outcome and struct process_counters.
 */
#ifndef PROTO_LOSS_H
#define PROTO_LOSS_H

enum region_loss {
	REGION_LOSS_TABLE_FULL = 0, /* no slot or index entry: allocated, but absent from in-use */
	REGION_LOSS_NO_BUFFER = 1,  /* copy backend: no free buffer; the stack is lost */
	REGION_LOSS_STALE = 2, /* the hook did not see a free; found when the address was allocated again */
	/* likewise, in a forked child that has changed its user id: of dropped_buffers none was free */
	REGION_LOSS_USER_CHANGED = 3,
	REGION_LOSS_COUNT = 8,
};

/* The cause as profiles and screens name it. */
static inline const char *region_loss_name(enum region_loss loss)
{
	switch (loss) {
	case REGION_LOSS_TABLE_FULL:
		return "table full";
	case REGION_LOSS_NO_BUFFER:
		return "no stack buffer";
	case REGION_LOSS_STALE:
		return "free not seen";
	case REGION_LOSS_USER_CHANGED:
		return "changed its user id";
	default:
		return "unknown";
	}
}

#endif

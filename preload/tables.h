/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's private tables (live.h, slot.h, mapping.h). They are mapped when a region is taken, as large
 * as its period needs and as the limits of address space and of data allow. Before there is a region they
 * take nothing: a program starts under every limit under which it starts without us.
 *
 * The period may become smaller later, and a heap may be larger than the period made likely. Then one more
 * table is mapped (last_level.h). Where that cannot be (a limit, a seccomp filter), the samples that have no
 * room are counted (REGION_LOSS_TABLE_FULL).
 */
#ifndef PRELOAD_TABLES_H
#define PRELOAD_TABLES_H

#include "proto/region.h"

#include <stdbool.h>
#include <stdint.h>

enum tables_mappings {
	TABLES_NO_MAPPINGS,
	TABLES_MAPPINGS_IF_ROOM, /* a later region may want them */
	TABLES_MAPPINGS,
};

struct tables_wish {
	uint64_t period_bytes;
	uint32_t segments; /* of the region */
	enum tables_mappings mappings;
	bool may_advise; /* madvise is not forbidden */
};

/* Does nothing if they are mapped already. False: there is no room. */
bool tables_open(const struct tables_wish *wish);

/* How many bytes are mapped. */
uint64_t tables_bytes(void);

/* Tells the sampler where they are. */
void tables_tell(struct region_header *header);

/* Unmaps what is not in use yet. */
void tables_give_back(void);

/* Unmaps the tables. The caller is the only thread, and not in a hook but before its first use of them: a few
 * pages stay, which may only be read, so that no limit of data counts them. */
void tables_close(void);

#endif

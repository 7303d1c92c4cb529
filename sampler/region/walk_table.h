/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's side of the walk backend's tables (proto/walk.h): publishes rows and stacks, and takes out
 * the counts. What it reads there may have been written by the target, and is believed only as far as the
 * target's own numbers go.
 */
#ifndef SAMPLER_REGION_WALK_TABLE_H
#define SAMPLER_REGION_WALK_TABLE_H

#include "proto/walk.h"
#include "sampler/region/region.h"

#include <stdbool.h>
#include <stdint.h>

struct walk_table {
	const struct region *region; /* borrowed */
	uint64_t generation;         /* for which the later files' rows are valid */
	uint32_t stack_count;        /* numbers given out */
	uint64_t refused;            /* rows and stacks that found no room */
};

/* Empty tables. Numbers begin after those that an earlier sampler gave out. */
void walk_table_open(struct walk_table *table, const struct region *region);

/* Adds the row of a return address, unless it is there. False: no room. */
bool walk_table_add_row(struct walk_table *table, bool later, uint64_t pc, struct walk_rule rule);

/* Adds a stack and returns its number; 0: no room. If it is there, the number that it has. */
uint32_t walk_table_add_stack(struct walk_table *table, uint64_t hash);

/* Takes every row, or those of later files, out of use. */
void walk_table_clear(struct walk_table *table);
void walk_table_clear_later(struct walk_table *table);

/* Whether a file may have been unmapped since the later files' rows became valid, and none is being unmapped
 * now. Then the caller clears these, reads the maps again, and calls walk_table_renew with the generation. */
bool walk_table_is_stale(const struct walk_table *table, uint64_t *generation);
void walk_table_renew(struct walk_table *table, uint64_t generation);

/* Whether what is learned from a sample now may be published as a later file's. */
bool walk_table_takes_later(const struct walk_table *table);

/* Calls `changed` with each count of the place that has changed since the last call. */
void walk_table_drain(const struct walk_table *table, uint32_t place,
    void (*changed)(void *context, uint32_t stack, struct tally count), void *context);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's side of the walk backend's tables (proto/walk.h). The sampler publishes rows, says which
 * numbers have a known stack, and takes out the counts. The target may write all that is read there: a wrong
 * value changes the target's own profile, and nothing else.
 */
#ifndef SAMPLER_INTAKE_WALK_TABLE_H
#define SAMPLER_INTAKE_WALK_TABLE_H

#include "proto/walk.h"
#include "sampler/intake/region.h"

#include <stdbool.h>
#include <stdint.h>

struct walk_table {
	const struct region *region; /* borrowed */
	uint64_t generation;         /* for which the later files' rows are valid */
	uint32_t first;              /* numbers up to this one were given out before this sampler came */
};

/* Empty tables. Numbers begin after those that were given out under an earlier sampler. */
void walk_table_open(struct walk_table *table, const struct region *region);

/* Adds the row of a return address, unless it is there. False: no room. */
bool walk_table_add_row(struct walk_table *table, bool later, uint64_t pc, struct walk_rule rule);

/* The number of the stack with that hash, as the hook would find or make it; 0: no room. */
uint32_t walk_table_number(struct walk_table *table, uint64_t hash);

/* Whether a number was given out since this sampler came. The functions below take only such numbers. */
bool walk_table_is_ours(const struct walk_table *table, uint32_t number);

/* The hash of the stack that the hook has walked. */
uint64_t walk_table_hash(const struct walk_table *table, uint32_t number);

void walk_table_tell(struct walk_table *table, uint32_t number, enum walk_number_state state);
void walk_table_ask_again(struct walk_table *table, uint32_t number);

/* Takes every row, or those of later files, out of use. */
void walk_table_clear(struct walk_table *table);
void walk_table_clear_later(struct walk_table *table);

/* Whether a file may have been unmapped since the later files' rows became valid, and none is being unmapped
 * now. Then the caller clears these, reads the maps again, and calls walk_table_renew with the generation. */
bool walk_table_is_stale(const struct walk_table *table, uint64_t *generation);
void walk_table_renew(struct walk_table *table, uint64_t generation);

/* Whether what is learned from a sample now may be published as a later file's. */
bool walk_table_takes_later(const struct walk_table *table);

/* Calls `changed` with each count of the place that has changed since the last call, and again with those for
 * which it returned false then. */
enum { WALK_DRAIN_WORDS = WALK_STACKS / 64 };
struct walk_drain {
	uint32_t place;
	/* the caller's, zero at first: a bit for each number that is to come again */
	uint64_t *left;
	bool (*changed)(void *context, uint32_t number, struct tally count);
	void *context;
};

/* True: some are to come again. */
bool walk_table_drain(struct walk_table *table, const struct walk_drain *drain);

#endif

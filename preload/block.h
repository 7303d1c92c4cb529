/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sampled block's life in the books: entered into tallies, slots and the live index when it is allocated,
 * taken out when it is freed. All of it needs a claimed place (claim.h).
 */
#ifndef PRELOAD_BLOCK_H
#define PRELOAD_BLOCK_H

#include "preload/live.h"

#include <stdbool.h>

/* Enters a new sample; entry: size, period, time and tid filled in by the caller; seq, slot and place are set
 * here. If there is no room, the sample is counted as lost. */
void block_insert(const void *pointer, struct live_entry *entry);

/* The same without the live index. `room` false: the caller has no room to remember it. Returns false if
 * there is no slot or no room; then the sample is counted as lost. */
bool block_enter(struct live_entry *entry, const void *pointer, bool room);

/* Removes an entry that live_take returned from its slot, and logs the free. */
void block_remove(const struct live_entry *entry);

/* Puts a taken entry back (a realloc that failed). */
void block_restore(const void *pointer, const struct live_entry *entry);

/* In a forked child that claims its place: gives an inherited entry a slot of the child. False: no slot is
 * free. */
bool block_inherit(const void *pointer, struct live_entry *entry);

#endif

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
 * here. Where there is no room the sample is counted as lost. */
void block_insert(const void *pointer, struct live_entry *entry);

/* The same without the live index. False: there is no slot for it, or `room` says that the caller has nowhere
 * to remember it; it is counted as lost. */
bool block_enter(struct live_entry *entry, bool room);

/* Takes an entry that live_take gave back out of its slot, and logs its free. */
void block_remove(const struct live_entry *entry);

/* Puts a taken entry back (a realloc that failed). */
void block_restore(const void *pointer, const struct live_entry *entry);

/* In a forked child that claims its place: gives an entry of the parent's a slot here. False: there is
 * none. */
bool block_inherit(struct live_entry *entry);

#endif

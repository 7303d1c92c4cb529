/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process' place in the shared region: its counters and its slots.
 *
 * The image that was executed has place 0. A forked child finds out that it is one at its first sampled event
 * (a page that the kernel wipes at fork, or the libc's fork hook where a seccomp filter is in force), claims
 * a free place with an atomic, and gives every block that was live at the fork a slot of its own there,
 * marked inherited. No system call is made. A vfork child shares its parent's memory and is, rightly, its
 * parent.
 */
#ifndef PRELOAD_PLACE_H
#define PRELOAD_PLACE_H

#include "preload/live.h"
#include "proto/region.h"
#include "proto/weight.h"

#include <stdbool.h>

/* What the constructor found out; private copies, since the shared header is writable by anyone who has it
 * mapped. */
struct place_setup {
	unsigned char *base;
	uint64_t places_offset, owners_offset, buffers_offset, frees_offset, slots_offset, kept_offset;
	uint32_t segments;
	uint64_t key;
	int clock_id;
	bool no_peak;
	uint32_t pid; /* of the image's process, as far as it is known */
	/* in a page that is zero in a forked child; or NULL: place_forked() is called instead */
	_Atomic uint32_t *wiped;
};

/* Opens for business: the calling process gets place 0. */
void place_open(const struct place_setup *setup);

/* Called by the libc before a fork and in the forked child, if it does (not for a raw clone). */
void place_forking(void);
void place_forked(void);

/* True when samples can be taken. Notices a fork. */
bool place_ready(void);

/* True when there is no session and never will be one. */
bool place_closed(void);

/* The constructor found no session. */
void place_close(void);

uint64_t place_now_ns(void);

/* The shared header; only valid once place_open has run. */
struct region_header *place_header(void);

/* Our place in it; only valid while place_ready says so. */
struct region_place *place_self(void);

/* What goes into the trigger's first register: the region's key and this process' place. */
uint64_t place_key(void);

uint32_t place_index(void);
unsigned char *place_buffers(void);

/* Whether somebody listens at the trigger. */
bool place_tapped(void);

/* Draws a sequence number and enters a new sample into the tallies and, if there is room, the slots and the
 * index. entry: size, period, time and tid filled in by the caller; seq, slot and place are set here. */
void place_insert(const void *pointer, struct live_entry *entry);

/* The same without the index. False: there is no slot for it, or `room` says that there is nowhere to
 * remember it; it is counted and lost. */
bool place_enter(const void *pointer, struct live_entry *entry, bool room);

/* Takes an entry that live_take gave back out of its slot, and enters its free. */
void place_remove(const struct live_entry *entry);

/* Puts a taken entry back (a realloc that failed). */
void place_restore(const void *pointer, const struct live_entry *entry);

/* In a forked child that claims its place: gives an entry of the parent's a slot here. False: it has none. */
bool place_inherit(const void *pointer, struct live_entry *entry);

/* Slots, for those whose entry is this process' own. */
struct region_slot *place_slot(uint32_t slot);
struct region_slot *place_kept(uint32_t slot);
bool place_is_mine(const struct live_entry *entry);

void place_count_loss(enum region_loss cause, uint64_t size_bytes, uint64_t period_bytes);

#endif

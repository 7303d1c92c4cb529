/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows that one dump of a stack gives to the hook of a program run, so that the hook can walk such a
 * stack itself.
 *
 * The rule of a row has 8 bytes (struct walk_rule). They can say that the caller's frame is counted from the
 * stack pointer or the frame pointer, and where in memory the return address and the caller's frame pointer
 * are. A frame has no row if libdw's rule does not fit into this. Nor has a signal frame, or a guess. The
 * hook does not walk a stack with such a frame: each of its samples needs a dump.
 */
#ifndef SAMPLER_BOOKS_WALK_ROWS_H
#define SAMPLER_BOOKS_WALK_ROWS_H

#include "sampler/intake/walk.h"
#include "sampler/intake/walk_table.h"
#include "sampler/unwind/unwind.h"

enum { WALK_ROWS_BANNED = 16 };

struct walk_rows {
	struct walk_table table;
	struct region_range start_files[REGION_START_FILES]; /* code that stays where it is */
	uint32_t start_count;
	/* In a process that was attached to, dlclose may be called by an address that was found before, so
	 * no hook tells that a file is unmapped. */
	bool no_later_files;
	struct module *banned[WALK_ROWS_BANNED]; /* referenced */
	size_t banned_count;
};

void walk_rows_open(struct walk_rows *rows, const struct region *region);
void walk_rows_close(struct walk_rows *rows);

/* A stack whose rows are published. The first frame of a dump is in our library. Other frames may be in it
 * too: it wraps the functions that threads begin with. No frame of the library is part of the stack's
 * identity. */
struct walk_rows_stack {
	uint64_t hash; /* what a hook that walks this stack finds; 0: it cannot be walked */
	bool later;    /* a frame is in a file that may be unmapped */
};

/* Publishes the rows of a walk. may_be_later: also those of files that may be unmapped. */
struct walk_rows_stack walk_rows_publish(
    struct walk_rows *rows, const struct walk_result *walk, bool may_be_later);

/* Forgets all rows. No row of the module is published any more; if it is NULL, or too many are banned, the
 * hook walks no stack any more. */
void walk_rows_ban(struct walk_rows *rows, const struct region *region, struct module *module);

#endif

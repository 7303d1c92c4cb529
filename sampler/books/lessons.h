/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lessons: the rows that a dump teaches the hook of one program run, so that the hook can walk such a
 * stack itself.
 *
 * A row is only published if libdw's rule says the same in 8 bytes: the caller's frame by stack or frame
 * pointer, return address and frame pointer in memory. Anything else (a signal frame, a guess by frame
 * pointer) leaves its stacks to the dump.
 */
#ifndef SAMPLER_BOOKS_LESSONS_H
#define SAMPLER_BOOKS_LESSONS_H

#include "sampler/intake/walk.h"
#include "sampler/intake/walk_table.h"
#include "sampler/unwind/unwind.h"

enum { LESSONS_BANNED = 16 };

struct lessons {
	struct walk_table table;
	struct region_range start_files[REGION_START_FILES]; /* code that stays where it is */
	uint32_t start_count;
	/* In a process that was attached to, dlclose may be called by an address that was found before, so
	 * no hook tells that a file is unmapped. */
	bool no_later_files;
	struct module *banned[LESSONS_BANNED]; /* referenced */
	size_t banned_count;
};

void lessons_open(struct lessons *lessons, const struct region *region);
void lessons_close(struct lessons *lessons);

/* What a walked stack teaches. The first frame is where the library was when the dump was taken. Frames of
 * the library itself may be anywhere, since it starts threads; they are no part of the stack's
 * identity. */
struct lesson {
	uint64_t hash; /* what a hook that walks this stack finds; 0: it cannot be walked */
	bool later;    /* a frame is in a file that may be unmapped */
};

/* Publishes the rows of a walk. may_be_later: also those of files that may be unmapped. */
struct lesson lessons_teach(struct lessons *lessons, const struct walk_result *walk, bool may_be_later);

/* Forgets all rows. The module teaches nothing any more; if it is NULL, or too many are banned, the hook
 * walks no stack any more. */
void lessons_ban(struct lessons *lessons, const struct region *region, struct module *module);

#endif

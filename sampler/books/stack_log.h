/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the stacks of a process' live blocks in its region (proto/stack_log.h), and finds those that an
 * earlier sampler has kept there.
 *
 *   a block is entered in the books  -> new nodes and frames are written, then the slot's entry
 *   a walked stack gets its number   -> the number's entry is written
 *   this sampler dies, another comes -> the stack of a live block is found, by its slot or its number
 *
 * The log is hostile input: a wrong entry gives a wrong stack in the profile of the process that wrote it. A
 * frame is not believed if another file is at its address by now, or if its file is mapped elsewhere; nor is
 * any stack with that frame. Code made at run time has no file to compare: it is taken for the code that was
 * at its address before.
 */
#ifndef SAMPLER_BOOKS_STACK_LOG_H
#define SAMPLER_BOOKS_STACK_LOG_H

#include "proto/stack_log.h"
#include "sampler/intake/region.h"
#include "sampler/unwind/maps.h"
#include "sampler/unwind/stacks.h"

#include <stdbool.h>
#include <stdint.h>

/* The log of one place. */
struct stack_log {
	const struct region *region; /* borrowed, as is the rest */
	struct stacks *stacks;       /* the process' own table */
	uint32_t place;
	bool waits; /* nothing is written yet: the entries of an earlier sampler must be read first */
	bool open;
	uint32_t epoch, frame_count, node_count;
};

void stack_log_init(
    struct stack_log *log, const struct region *region, uint32_t place, struct stacks *stacks);

/* Writes a stack of the process' own table: the stack of a block, or of a walked stack's number. */
void stack_log_block(struct stack_log *log, uint32_t slot, uint64_t seq, uint32_t stack);
void stack_log_walked(struct stack_log *log, uint32_t number, uint32_t stack);

/* An upper bound of the region's memory that was written. segments: how many have a block of the process
 * in its books. */
uint64_t stack_log_bytes(const struct stack_log *log, uint32_t segments);

/* Empties the log. From now on stacks are written to it. */
void stack_log_renew(struct stack_log *log);

/* What an earlier sampler has left. */
struct stack_log_reader {
	const struct stack_log *log; /* borrowed */
	struct maps *maps;           /* the process' as they are now; borrowed */
	uint32_t epoch, frame_count, node_count;
	struct stack_log_frame *frames; /* copies; owned */
	struct stack_log_node *nodes;
	uint32_t *stacks; /* by node, in the process' own table, plus 1; 0: not looked up yet; owned */
	uint32_t *path;   /* room for as many nodes; owned */
};

/* Returns 0, -ENOENT if the log is empty, or -ENOMEM. */
int stack_log_open(struct stack_log_reader *reader, const struct stack_log *log, struct maps *maps);
void stack_log_close(struct stack_log_reader *reader);

/* The block's stack in the process' own table; UINT32_MAX if it is not known. */
uint32_t stack_log_find(struct stack_log_reader *reader, uint32_t slot, const struct slot_copy *block);

#endif

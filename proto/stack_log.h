/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack log: the stacks of the blocks that live, as the sampler knows them. It lies in the region, so it
 * is there as long as the process is, and the next sampler finds it if this one dies. Samplers alone write
 * and read it; the program run only keeps it.
 *
 *   slots    by slot: which block it is of (its seq), and the node of its stack in the tree of its place
 *   places   the tree: node = (outer node, frame), frame = (pc, what was mapped there); and by the number of
 *            a walked stack its node
 *
 * Of each place the tree is as the sampler's own (sampler/unwind/stacks.h), node by node. What a sampler has
 * begun to log is void once the place's epoch is another one.
 */
#ifndef PROTO_STACK_LOG_H
#define PROTO_STACK_LOG_H

#include "proto/walk.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
	STACK_LOG_PLACES = 16, /* processes of a run that have one, of 1.3 MiB */
	STACK_LOG_FRAMES = 1 << 15,
	STACK_LOG_NODES = 1 << 16,
};

/* STACK_LOG_MARKER: no code; `pc` is the number of the marker frame. */
#define STACK_LOG_MARKER UINT64_MAX
struct stack_log_frame {
	uint64_t pc;      /* absolute, already moved into the call */
	uint64_t mapping; /* fingerprint of what was mapped there */
};

struct stack_log_node {
	uint32_t outer; /* smaller than the node's own number; 0: none */
	uint32_t frame;
};

struct stack_log_name {
	uint32_t node, epoch; /* node 0: none */
};

struct stack_log_slot {
	uint64_t seq_plus_1;
	struct stack_log_name stack;
};

struct stack_log_place {
	_Alignas(4096) _Atomic uint32_t epoch;
	_Atomic uint32_t frame_count, node_count; /* stored when the entries are there */
	struct stack_log_frame frames[STACK_LOG_FRAMES];
	struct stack_log_node nodes[STACK_LOG_NODES]; /* [0] is no stack */
	struct stack_log_name walked[WALK_STACKS];    /* by number */
};

_Static_assert(sizeof(struct stack_log_slot) == 16, "four in a cache line");

#endif

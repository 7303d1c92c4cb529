/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of one process, each kept once.
 *
 *   frames   (address, module) -> frame number, with all that is needed to name it after an unload
 *   nodes    a tree: node = (outer node, frame); a stack is the number of its innermost node
 *
 *            main ── serve ── parse ── alloc_token      stack 4 = {main, serve, parse, alloc_token}
 *                         └── reply                     stack 5 = {main, serve, reply}
 *
 * Two stacks share the nodes of their common outer frames, so each of a program's hundred thousand stacks
 * takes only a few nodes (8 bytes and 16 to 32 of hash).
 */
#ifndef SAMPLER_UNWIND_STACKS_H
#define SAMPLER_UNWIND_STACKS_H

#include "sampler/unwind/module.h"
#include "sampler/unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

struct stacks;

enum { STACK_ROOT = 0 }; /* the empty stack */

/* Marker frames besides the unwinder's. */
/* only an earlier sampler knew these stacks */
#define STACK_BEFORE_RESTART "[unknown: sampled before restart]"
#define STACK_LOST_SAMPLES   "[lost samples]" /* the kernel's ring had no room for them */
/* of a thread without an address space */
#define STACK_NONE           "[no user stack]"

/* Where a frame's code was mapped when it was first seen. module is NULL if the code is in no file. */
struct stack_mapping {
	uint64_t start, end, file_offset;
	struct module *module; /* holds a reference */
	uint8_t kind;          /* enum map_kind */
};

struct stack_frame {
	uint64_t pc;      /* absolute, already moved into the call */
	uint64_t vaddr;   /* in the module's file */
	uint32_t mapping; /* index for stacks_mapping() */
	/* a static string such as "[truncated]" if the frame is no code; pc is then a small number */
	const char *marker;
};

struct stack_node {
	uint32_t outer; /* STACK_ROOT: none */
	uint32_t frame;
};

/* With one reference. NULL: out of memory. */
struct stacks *stacks_new(void);
struct stacks *stacks_ref(struct stacks *stacks);
void stacks_unref(struct stacks *stacks); /* the last one frees it; NULL: nothing */

/*
 * The stack of `count` frames, innermost first, with `marker` (a static string or NULL) as the outermost
 * frame and one for UNWIND_GUESSED inside each run of frames found by frame pointer. Frames and MAPS must be
 * as unwind_stack() left them; MAPS remember the numbers of frames for this table alone (unwind_remember).
 * Returns UINT32_MAX if out of memory, if full, or beyond STACKS_NODES_MAX nodes, which only a hostile target
 * makes.
 */
enum { STACKS_NODES_MAX = 1 << 22 };
uint32_t stacks_intern(struct stacks *stacks, const struct unwind_frame *frames, size_t count,
    const char *marker, struct maps *maps);

/* While the tables are full they take no more memory: a new stack is refused (UINT32_MAX). */
void stacks_set_full(struct stacks *stacks, bool full);

/* Memory that the tables take. */
uint64_t stacks_bytes(const struct stacks *stacks);

/* The stack of `outer` and one frame within it; frame->mapping is ignored. UINT32_MAX: as stacks_intern(). */
uint32_t stacks_add(struct stacks *stacks, uint32_t outer, const struct stack_frame *frame,
    const struct stack_mapping *mapping);

/* The same stack in another table (a forked child's, with the same addresses), or in the same table. */
uint32_t stacks_translate(const struct stacks *from, uint32_t stack, struct stacks *to);

uint32_t stacks_node_count(const struct stacks *stacks);
uint32_t stacks_frame_count(const struct stacks *stacks);
uint32_t stacks_mapping_count(const struct stacks *stacks);
const struct stack_node *stacks_node(const struct stacks *stacks, uint32_t stack);
const struct stack_frame *stacks_frame(const struct stacks *stacks, uint32_t frame);
const struct stack_mapping *stacks_mapping(const struct stacks *stacks, uint32_t mapping);

#endif

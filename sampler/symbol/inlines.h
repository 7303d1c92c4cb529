/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of inlined calls around each address, of one compilation unit.
 *
 * A function's DIE has ranges, and so has every call that was inlined into it: a tree of nested address sets.
 * One search over the unit's DIEs, from the outside in, finds the innermost node around every wanted address;
 * subtrees that contain no wanted address are skipped. For
 *
 *   subprogram f      [100,180)        wanted 110: node 0 (f)
 *     inlined g       [120,150)               130: node 2 (h), parent 1 (g), parent 0 (f)
 *       inlined h     [128,140)               145: node 1 (g), parent 0 (f)
 *     inlined g       [160,170)
 *
 * only nodes that contain a wanted address are made: the second g is not.
 *
 * Why not dwarf_getscopes(): it goes over the unit's tree again for each address (6 to 15 ms each in large
 * C++ units), and it loses most of Rust's inlined calls.
 */
#ifndef SAMPLER_SYMBOL_INLINES_H
#define SAMPLER_SYMBOL_INLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

enum { INLINES_NONE = -1 };

struct inlines_node {
	Dwarf_Die die;
	int32_t parent; /* the node that this one is inlined into; INLINES_NONE: a function of its own */
};

struct inlines {
	struct inlines_node *nodes;
	size_t node_count;
	size_t node_capacity;
	int32_t *innermost; /* of vaddrs[i]: node or INLINES_NONE */
	size_t work_left;   /* DIEs and ranges that may still be read; 0: the search was given up */
};

/* Searches a unit for n ascending addresses. Returns 0 or -ENOMEM. Call inlines_fini() in both cases. */
int inlines_init(struct inlines *inlines, Dwarf_Die *unit, const uint64_t *vaddrs, size_t n);
void inlines_fini(struct inlines *inlines);

/*
 * The attributes of a node's DIE or of its abstract origin. Strings belong to the Dwarf; NULL and 0: unknown.
 */
const char *inlines_linkage_name(const struct inlines_node *node);
const char *inlines_name(const struct inlines_node *node);
uint32_t inlines_start_line(const struct inlines_node *node);

/* Where an inlined node was called from: the line, and the file's number for unit_lines_file() (UINT64_MAX:
 * unknown). */
void inlines_call(const struct inlines_node *node, uint64_t *file, uint32_t *line);

#endif

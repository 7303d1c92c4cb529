/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/inlines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "pprof/table/array.h"

enum {
	DEPTH_MAX = 192,      /* of DIEs; clang and rustc stay below 100 */
	WORK_MAX = 100000000, /* DIEs and ranges in one unit: some 10 s, only hostile files get there */
	NODES_MAX = 1 << 20,
};

struct search {
	struct inlines *inlines;
	const uint64_t *vaddrs;
	size_t n;
	bool thorough; /* look for functions inside functions, blocks and classes too */
	int error;
};

static bool work(struct search *search)
{
	if (search->error || search->inlines->work_left == 0)
		return false;
	search->inlines->work_left--;
	return true;
}

static int32_t node_add(struct search *search, const Dwarf_Die *die, int32_t parent)
{
	struct inlines *inlines = search->inlines;

	if (inlines->node_count == inlines->node_capacity) {
		size_t capacity = inlines->node_capacity ? inlines->node_capacity * 2 : 64;
		struct inlines_node *nodes;

		if (capacity > NODES_MAX)
			return INLINES_NONE;
		nodes = reallocarray(inlines->nodes, capacity, sizeof(*nodes));
		if (!nodes) {
			search->error = -ENOMEM;
			return INLINES_NONE;
		}
		inlines->nodes = nodes;
		inlines->node_capacity = capacity;
	}
	inlines->nodes[inlines->node_count] = (struct inlines_node){.die = *die, .parent = parent};
	return (int32_t)inlines->node_count++;
}

/*
 * Assigns the addresses in the DIE's ranges that belong to the parent so far to a new node. Since an address
 * must still belong to the parent, ranges that exceed the parent's have no effect, and of overlapping
 * siblings the first one wins. Returns the node; INLINES_NONE: it has no address.
 */
static int32_t assign(struct search *search, Dwarf_Die *die, int32_t parent)
{
	int32_t *innermost = search->inlines->innermost;
	Dwarf_Addr base, start, end;
	int32_t node = INLINES_NONE;
	ptrdiff_t next = 0;

	while (work(search) && (next = dwarf_ranges(die, next, &base, &start, &end)) > 0) {
		size_t i = array_lower_bound(search->vaddrs, search->n, sizeof(start), 0, start);

		for (; i < search->n && search->vaddrs[i] < end; i++) {
			if (innermost[i] != parent)
				continue;
			if (node == INLINES_NONE)
				node = node_add(search, die, parent);
			if (node == INLINES_NONE)
				return INLINES_NONE;
			innermost[i] = node;
		}
	}
	return node;
}

static bool has_ranges(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_ranges) || dwarf_hasattr(die, DW_AT_low_pc);
}

/* Can a block contain addresses of this node? A block without ranges spans what its parent spans. */
static bool touches(struct search *search, Dwarf_Die *die, int32_t node)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t next = 0;

	if (!has_ranges(die))
		return true;
	while (work(search) && (next = dwarf_ranges(die, next, &base, &start, &end)) > 0) {
		size_t i = array_lower_bound(search->vaddrs, search->n, sizeof(start), 0, start);

		for (; i < search->n && search->vaddrs[i] < end; i++)
			if (search->inlines->innermost[i] == node)
				return true;
	}
	return false;
}

static void search_children(struct search *search, Dwarf_Die *die, int32_t node, unsigned depth);

static void visit(struct search *search, Dwarf_Die *die, int32_t node, unsigned depth)
{
	int32_t own;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		own = assign(search, die, INLINES_NONE);
		if (own != INLINES_NONE || search->thorough)
			search_children(search, die, own, depth);
		return;
	case DW_TAG_inlined_subroutine:
		own = node == INLINES_NONE ? INLINES_NONE : assign(search, die, node);
		if (own != INLINES_NONE)
			search_children(search, die, own, depth);
		return;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		if (search->thorough || (node != INLINES_NONE && touches(search, die, node)))
			search_children(search, die, node, depth);
		return;
	case DW_TAG_namespace:
	case DW_TAG_module:
		search_children(search, die, INLINES_NONE, depth);
		return;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
		if (search->thorough)
			search_children(search, die, INLINES_NONE, depth);
		return;
	default:
		return;
	}
}

static void search_children(struct search *search, Dwarf_Die *die, int32_t node, unsigned depth)
{
	Dwarf_Off offset = 0;
	Dwarf_Die child;

	if (depth >= DEPTH_MAX || dwarf_child(die, &child) != 0)
		return;
	do {
		/* DW_AT_sibling of a hostile file may point back, which would make an endless loop. */
		if (dwarf_dieoffset(&child) <= offset || !work(search))
			return;
		offset = dwarf_dieoffset(&child);
		visit(search, &child, node, depth + 1);
	} while (dwarf_siblingof(&child, &child) == 0);
}

static bool all_found(const struct search *search)
{
	for (size_t i = 0; i < search->n; i++)
		if (search->inlines->innermost[i] == INLINES_NONE)
			return false;
	return true;
}

int inlines_init(struct inlines *inlines, Dwarf_Die *unit, const uint64_t *vaddrs, size_t n)
{
	struct search search = {.inlines = inlines, .vaddrs = vaddrs, .n = n};

	*inlines =
	    (struct inlines){.work_left = WORK_MAX, .innermost = malloc(n * sizeof(*inlines->innermost))};
	if (!inlines->innermost)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		inlines->innermost[i] = INLINES_NONE;
	search_children(&search, unit, INLINES_NONE, 0);
	/*
	 * Functions inside functions and classes (GNU C's nested ones, lambdas) are rare: only a second,
	 * slower search finds them.
	 */
	if (!search.error && !all_found(&search)) {
		search.thorough = true;
		search_children(&search, unit, INLINES_NONE, 0);
	}
	return search.error;
}

void inlines_fini(struct inlines *inlines)
{
	free(inlines->nodes);
	free(inlines->innermost);
}

static const char *string_of(const struct inlines_node *node, unsigned name)
{
	Dwarf_Die die = node->die;
	Dwarf_Attribute attribute;
	const char *text = dwarf_formstring(dwarf_attr_integrate(&die, name, &attribute));

	return text && text[0] != '\0' ? text : NULL;
}

static uint64_t number_of(Dwarf_Attribute *attribute)
{
	Dwarf_Word number;

	return attribute && dwarf_formudata(attribute, &number) == 0 ? number : 0;
}

static uint32_t line_number(uint64_t number)
{
	return number <= INT32_MAX ? (uint32_t)number : 0;
}

const char *inlines_linkage_name(const struct inlines_node *node)
{
	const char *name = string_of(node, DW_AT_linkage_name);

	return name ? name : string_of(node, DW_AT_MIPS_linkage_name);
}

const char *inlines_name(const struct inlines_node *node)
{
	return string_of(node, DW_AT_name);
}

uint32_t inlines_start_line(const struct inlines_node *node)
{
	Dwarf_Die die = node->die;
	Dwarf_Attribute attribute;

	return line_number(number_of(dwarf_attr_integrate(&die, DW_AT_decl_line, &attribute)));
}

void inlines_call(const struct inlines_node *node, uint64_t *file, uint32_t *line)
{
	Dwarf_Die die = node->die;
	Dwarf_Attribute attribute;

	*file = dwarf_hasattr(&die, DW_AT_call_file)
	    ? number_of(dwarf_attr(&die, DW_AT_call_file, &attribute))
	    : UINT64_MAX;
	*line = line_number(number_of(dwarf_attr(&die, DW_AT_call_line, &attribute)));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/stacks.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"

#include <stdlib.h>
#include <string.h>

enum {
	PATH_FRAMES = 512,
	UNKNOWN_BYTES =
	    4096, /* size assumed for an unknown mapping: one for each address would be too many */
};

/* A frame of the stack interned last: consecutive stacks mostly share most of their outer frames. */
struct step {
	uint32_t frame, node;
};

/* A slot of the nodes' hash; it holds the whole key, so that a comparison reads nothing else. */
struct node_slot {
	uint32_t outer, frame;
	uint32_t node; /* 0: empty; the root is in no slot */
};

struct stacks {
	struct step path[PATH_FRAMES]; /* outermost first */
	uint32_t path_count;
	const char *path_marker;
	uint32_t guess_frame;     /* number + 1 of the marker's frame; 0: not made yet */
	struct stack_node *nodes; /* [0] is the root */
	struct stack_frame *frames;
	struct stack_mapping *mappings;
	uint32_t node_count, frame_count, mapping_count;
	size_t node_capacity, frame_capacity, mapping_capacity;
	/* Open addressing, at most 3/4 full. No struct index, for speed: every frame that differs from the
	 * previous stack is looked up here. */
	struct node_slot *node_hash;
	uint32_t node_hash_bits;
	uint64_t node_hash_factor;               /* secret and odd: a target knows its nodes' numbers */
	struct index frame_index, mapping_index; /* ids: number + 1 */
	bool full;                               /* see stacks_set_full() */
	uint32_t references;
};

static uint64_t node_key(const struct stacks *s, uint32_t outer, uint32_t frame)
{
	/* The secret factor keeps targets from choosing pairs that collide. The second factor, 2^64 / golden
	 * ratio, spreads consecutive numbers whatever the secret is. */
	uint64_t key = ((uint64_t)outer << 32 | frame) * s->node_hash_factor;

	return (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint32_t hash_frame(const struct stack_frame *f)
{
	uint64_t hash = index_mix(index_mix(index_seed(), f->pc), f->mapping);

	return index_fold(index_mix(hash, (uintptr_t)f->marker));
}

static uint32_t hash_mapping(const struct stack_mapping *m)
{
	uint64_t hash = index_mix(index_mix(index_seed(), m->start), m->end);

	hash = index_mix(index_mix(hash, m->file_offset), (uintptr_t)m->module);
	return index_fold(index_mix(hash, m->kind));
}

/* Makes room for one more node in the hash: called before it is added, so that the hash is never full. */
static bool node_hash_grow(struct stacks *s)
{
	if (s->node_hash && s->node_count < (3u << s->node_hash_bits) / 4)
		return true;
	uint32_t bits = s->node_hash ? s->node_hash_bits + 1 : 7;
	struct node_slot *grown = calloc((size_t)1 << bits, sizeof(*grown));
	if (!grown)
		return false;
	uint32_t mask = (1u << bits) - 1;
	for (uint32_t i = 1; i < s->node_count; i++) {
		uint32_t at = (uint32_t)(node_key(s, s->nodes[i].outer, s->nodes[i].frame) >> (64 - bits));

		while (grown[at].node)
			at = (at + 1) & mask;
		grown[at] = (struct node_slot){s->nodes[i].outer, s->nodes[i].frame, i};
	}
	free(s->node_hash);
	s->node_hash = grown;
	s->node_hash_bits = bits;
	return true;
}

struct stacks *stacks_new(void)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->references = 1;
	s->node_hash_factor = index_seed() | 1;
	if (array_reserve(&s->nodes, &s->node_capacity, 1, sizeof(*s->nodes)) || !node_hash_grow(s)) {
		stacks_unref(s);
		return NULL;
	}
	s->nodes[0] = (struct stack_node){STACK_ROOT, UINT32_MAX};
	s->node_count = 1;
	return s;
}

struct stacks *stacks_ref(struct stacks *s)
{
	s->references++;
	return s;
}

void stacks_unref(struct stacks *s)
{
	if (!s || --s->references)
		return;
	for (uint32_t i = 0; i < s->mapping_count; i++)
		module_unref(s->mappings[i].module);
	free(s->nodes);
	free(s->frames);
	free(s->mappings);
	free(s->node_hash);
	index_fini(&s->frame_index);
	index_fini(&s->mapping_index);
	free(s);
}

static uint32_t find_mapping(struct stacks *s, const struct stack_mapping *wanted)
{
	uint32_t hash = hash_mapping(wanted), found, number = s->mapping_count;
	size_t cursor = index_start(hash);

	while ((found = index_next(&s->mapping_index, hash, &cursor))) {
		const struct stack_mapping *m = &s->mappings[found - 1];

		if (m->start == wanted->start && m->end == wanted->end && m->module == wanted->module &&
		    m->file_offset == wanted->file_offset && m->kind == wanted->kind)
			return found - 1;
	}
	if (s->full || array_reserve(&s->mappings, &s->mapping_capacity, number + 1, sizeof(*s->mappings)) ||
	    index_add(&s->mapping_index, hash, number + 1))
		return UINT32_MAX;
	s->mappings[number] = *wanted;
	if (wanted->module)
		module_ref(wanted->module);
	s->mapping_count++;
	return number;
}

static uint32_t find_frame(struct stacks *s, const struct stack_frame *wanted)
{
	uint32_t hash = hash_frame(wanted), found, number = s->frame_count;
	size_t cursor = index_start(hash);

	while ((found = index_next(&s->frame_index, hash, &cursor))) {
		const struct stack_frame *f = &s->frames[found - 1];

		if (f->pc == wanted->pc && f->mapping == wanted->mapping && f->marker == wanted->marker)
			return found - 1;
	}
	if (s->full ||
	    array_reserve(&s->frames, &s->frame_capacity, (size_t)number + 1, sizeof(*s->frames)) ||
	    index_add(&s->frame_index, hash, number + 1))
		return UINT32_MAX;
	s->frames[number] = *wanted;
	s->frame_count++;
	return number;
}

static inline __attribute__((always_inline)) struct node_slot *node_slot(
    const struct stacks *s, uint32_t outer, uint32_t frame)
{
	uint32_t mask = (1u << s->node_hash_bits) - 1;
	uint32_t at = (uint32_t)(node_key(s, outer, frame) >> (64 - s->node_hash_bits));

	while (s->node_hash[at].node && (s->node_hash[at].outer != outer || s->node_hash[at].frame != frame))
		at = (at + 1) & mask;
	return &s->node_hash[at];
}

static uint32_t find_node(struct stacks *s, uint32_t outer, uint32_t frame)
{
	struct node_slot *slot = node_slot(s, outer, frame);
	uint32_t number = s->node_count, bits = s->node_hash_bits;

	if (slot->node)
		return slot->node;
	if (s->full || number >= STACKS_NODES_MAX || !node_hash_grow(s) ||
	    (number >= s->node_capacity &&
	        array_reserve(&s->nodes, &s->node_capacity, (size_t)number + 1, sizeof(*s->nodes)) != 0))
		return UINT32_MAX;
	if (bits != s->node_hash_bits)
		slot = node_slot(s, outer, frame);
	s->nodes[number] = (struct stack_node){outer, frame};
	*slot = (struct node_slot){outer, frame, number};
	s->node_count++;
	return number;
}

static uint32_t marker_frame(struct stacks *s, const char *marker)
{
	const struct stack_mapping none = {.kind = MAP_KIND_SPECIAL};
	struct stack_frame frame = {.marker = marker, .mapping = find_mapping(s, &none)};

	return frame.mapping == UINT32_MAX ? UINT32_MAX : find_frame(s, &frame);
}

static uint32_t marker_node(struct stacks *s, const char *marker)
{
	uint32_t number = marker_frame(s, marker);

	return number == UINT32_MAX ? UINT32_MAX : find_node(s, STACK_ROOT, number);
}

/* The marker frame in front of frames that are guesses. */
static uint32_t guess_frame(struct stacks *s)
{
	if (!s->guess_frame) {
		uint32_t number = marker_frame(s, unwind_marker(UNWIND_GUESSED));

		s->guess_frame = number == UINT32_MAX ? 0 : number + 1;
	}
	return s->guess_frame - 1;
}

/* The number of a frame, for an address without a remembered number. */
static uint32_t look_up_frame(struct stacks *s, const struct unwind_frame *from, const struct maps *maps)
{
	const struct map *map = from->kind == MAP_KIND_KERNEL ? NULL : maps_find(maps, from->pc);
	struct stack_mapping mapping = {.module = from->module, .kind = from->kind};

	if (from->kind == MAP_KIND_KERNEL) {
		mapping.start = MAP_KERNEL_START;
		mapping.end = UINT64_MAX;
	} else if (map) {
		mapping.start = map->start;
		mapping.end = map->end;
		mapping.file_offset = map->pgoff;
	} else {
		mapping.start = from->pc & ~(uint64_t)(UNKNOWN_BYTES - 1);
		mapping.end = mapping.start + UNKNOWN_BYTES;
	}
	struct stack_frame frame = {
	    .pc = from->pc, .vaddr = from->vaddr, .mapping = find_mapping(s, &mapping)};
	return frame.mapping == UINT32_MAX ? UINT32_MAX : find_frame(s, &frame);
}

static uint32_t frame_number(struct stacks *s, const struct unwind_frame *from, struct maps *maps)
{
	if (from->tag && from->tag <= s->frame_count)
		return from->tag - 1;
	uint32_t number = look_up_frame(s, from, maps);
	if (number != UINT32_MAX)
		unwind_remember(maps, from, number + 1);
	return number;
}

/* A stack in the making: its outer frames so far. */
struct growing {
	uint32_t node, depth;
	bool same; /* true while the frames are those of the stack interned last */
};

static inline __attribute__((always_inline)) void add_inner(
    struct stacks *s, struct growing *stack, uint32_t number)
{
	uint32_t depth = stack->depth++;

	stack->same = stack->same && depth < s->path_count && s->path[depth].frame == number;
	if (stack->same) {
		stack->node = s->path[depth].node;
		return;
	}
	stack->node = number == UINT32_MAX ? UINT32_MAX : find_node(s, stack->node, number);
	if (depth < PATH_FRAMES)
		s->path[depth] = (struct step){number, stack->node};
}

/* Are the frames outside of the one at `inner` the first of a run of guesses? */
static bool guess_begins(const struct unwind_frame *frames, size_t inner)
{
	return frames[inner + 1].step == UNWIND_STEP_FP && frames[inner].step != UNWIND_STEP_FP;
}

uint32_t stacks_intern(
    struct stacks *s, const struct unwind_frame *frames, size_t count, const char *marker, struct maps *maps)
{
	struct growing stack = {
	    .node = marker ? marker_node(s, marker) : (uint32_t)STACK_ROOT,
	    .same = marker == s->path_marker,
	};

	s->path_marker = marker;
	for (size_t i = count; i > 0 && stack.node != UINT32_MAX; i--) {
		if (i < count && guess_begins(frames, i - 1)) {
			add_inner(s, &stack, guess_frame(s));
			if (stack.node == UINT32_MAX)
				break;
		}
		add_inner(s, &stack, frame_number(s, &frames[i - 1], maps));
	}
	s->path_count = stack.node == UINT32_MAX ? 0 : stack.depth < PATH_FRAMES ? stack.depth : PATH_FRAMES;
	return stack.node;
}

void stacks_set_full(struct stacks *s, bool full)
{
	s->full = full;
}

uint64_t stacks_bytes(const struct stacks *s)
{
	return sizeof(*s) + s->node_capacity * sizeof(*s->nodes) + s->frame_capacity * sizeof(*s->frames) +
	    s->mapping_capacity * sizeof(*s->mappings) + (sizeof(*s->node_hash) << s->node_hash_bits) +
	    index_bytes(&s->frame_index) + index_bytes(&s->mapping_index);
}

uint32_t stacks_add(
    struct stacks *s, uint32_t outer, const struct stack_frame *frame, const struct stack_mapping *mapping)
{
	struct stack_frame wanted = *frame;

	wanted.mapping = find_mapping(s, mapping);
	uint32_t number = wanted.mapping == UINT32_MAX ? UINT32_MAX : find_frame(s, &wanted);
	return number == UINT32_MAX ? UINT32_MAX : find_node(s, outer, number);
}

uint32_t stacks_translate(const struct stacks *from, uint32_t stack, struct stacks *to)
{
	if (stack >= from->node_count)
		return UINT32_MAX;
	if (stack == STACK_ROOT || from == to)
		return stack;
	/* Outer frames first. The depth is bounded by the unwinder's limit; no recursion, to save stack. */
	uint32_t depth = 0, node;
	for (node = stack; node != STACK_ROOT; node = from->nodes[node].outer)
		depth++;
	uint32_t *path = malloc(depth * sizeof(*path));
	if (!path)
		return UINT32_MAX;
	for (node = stack; node != STACK_ROOT; node = from->nodes[node].outer)
		path[--depth] = node;
	uint32_t result = STACK_ROOT;
	for (uint32_t i = 0;; i++) {
		const struct stack_frame *frame = &from->frames[from->nodes[path[i]].frame];

		result = stacks_add(to, result, frame, &from->mappings[frame->mapping]);
		if (path[i] == stack || result == UINT32_MAX)
			break;
	}
	free(path);
	return result;
}

uint32_t stacks_node_count(const struct stacks *s)
{
	return s->node_count;
}

uint32_t stacks_frame_count(const struct stacks *s)
{
	return s->frame_count;
}

uint32_t stacks_mapping_count(const struct stacks *s)
{
	return s->mapping_count;
}

const struct stack_node *stacks_node(const struct stacks *s, uint32_t stack)
{
	return &s->nodes[stack];
}

const struct stack_frame *stacks_frame(const struct stacks *s, uint32_t frame)
{
	return &s->frames[frame];
}

const struct stack_mapping *stacks_mapping(const struct stacks *s, uint32_t mapping)
{
	return &s->mappings[mapping];
}

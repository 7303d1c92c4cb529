/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/stack_log.h"

#include "pprof/table/index.h"
#include "proto/stack_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOT_KNOWN UINT32_MAX

enum { PAGE_BYTES = 4096 }; /* of the mapping that is assumed where no mapping is known */

/* ---- frames */

/* Frames that are no code. Their numbers are part of the log's format, which has the region's version. */
enum {
	MARKER_GUESSED = UNWIND_TOO_DEEP + 1,
	MARKER_BEFORE_RESTART,
	MARKER_UNREAD_CFI,
	MARKER_NOT_PRESENT,
	MARKERS
};

static const char *marker_text(uint64_t number)
{
	switch (number) {
	case MARKER_GUESSED:
		return unwind_marker(UNWIND_GUESSED);
	case MARKER_BEFORE_RESTART:
		return STACK_BEFORE_RESTART;
	case MARKER_UNREAD_CFI:
		return unwind_marker(UNWIND_UNREAD_CFI);
	case MARKER_NOT_PRESENT:
		return unwind_marker(UNWIND_NOT_PRESENT);
	default:
		return number < MARKER_GUESSED ? unwind_marker((enum unwind_outcome)number) : NULL;
	}
}

static uint64_t marker_number(const char *marker)
{
	for (uint64_t i = 0; i < MARKERS; i++)
		if (marker_text(i) && strcmp(marker_text(i), marker) == 0)
			return i;
	return UINT64_MAX;
}

/* Does not use the mapping's end: mprotect moves it. Code made at run time is known by its address alone. */
static uint64_t fingerprint(const struct stack_mapping *mapping)
{
	uint64_t hash =
	    index_mix(index_mix(index_mix(0, mapping->start), mapping->file_offset), mapping->kind);

	if (mapping->module) {
		const struct module_file *file = &mapping->module->file;

		hash = file->build_id_len ? index_mix_bytes(hash, file->build_id, file->build_id_len)
		                          : index_mix(index_mix(hash, file->dev), file->ino);
	}
	return hash == STACK_LOG_MARKER ? 0 : hash;
}

static struct stack_log_frame frame_of(const struct stacks *stacks, uint32_t number)
{
	const struct stack_frame *frame = stacks_frame(stacks, number);

	if (frame->marker)
		return (struct stack_log_frame){marker_number(frame->marker), STACK_LOG_MARKER};
	return (struct stack_log_frame){frame->pc, fingerprint(stacks_mapping(stacks, frame->mapping))};
}

/* The mapping at an address now, as the unwinder would find it. */
static struct stack_mapping mapping_at(struct maps *maps, uint64_t pc, uint64_t *vaddr)
{
	*vaddr = pc;
	if (pc >= MAP_KERNEL_START)
		return (struct stack_mapping){
		    .start = MAP_KERNEL_START, .end = UINT64_MAX, .kind = MAP_KIND_KERNEL};
	const struct map *map = maps_module(maps, pc);
	if (!map) {
		uint64_t start = pc & ~(uint64_t)(PAGE_BYTES - 1);

		return (struct stack_mapping){
		    .start = start, .end = start + PAGE_BYTES, .kind = MAP_KIND_SPECIAL};
	}
	if (map->has_bias)
		*vaddr = pc - map->bias;
	return (struct stack_mapping){
	    .start = map->start,
	    .end = map->end,
	    .file_offset = map->pgoff,
	    .module = map->has_bias ? map->module : NULL,
	    .kind = (uint8_t)map->kind,
	};
}

/* ---- writing */

void stack_log_init(struct stack_log *log, const struct region *region, uint32_t place, struct stacks *stacks)
{
	*log = (struct stack_log){.region = region, .stacks = stacks, .place = place};
}

/* The address is not kept: region_abandoned() may map the region elsewhere. */
static struct stack_log_place *place_of(const struct stack_log *log)
{
	return region_stack_log(log->region, log->place);
}

static bool is_open(struct stack_log *log)
{
	struct stack_log_place *place = place_of(log);

	if (log->open || log->waits || !place)
		return log->open;
	log->epoch = atomic_load(&place->epoch) + 1;
	log->frame_count = log->node_count = 0;
	atomic_store(&place->node_count, 0);
	atomic_store(&place->frame_count, 0);
	atomic_store(&place->epoch, log->epoch);
	return log->open = true;
}

static void write_tree(struct stack_log *log)
{
	struct stack_log_place *place = place_of(log);
	const uint32_t frames = stacks_frame_count(log->stacks), nodes = stacks_node_count(log->stacks);

	for (; log->frame_count < frames && log->frame_count < STACK_LOG_FRAMES; log->frame_count++)
		place->frames[log->frame_count] = frame_of(log->stacks, log->frame_count);
	for (; log->node_count < nodes && log->node_count < STACK_LOG_NODES; log->node_count++) {
		const struct stack_node *node = stacks_node(log->stacks, log->node_count);

		place->nodes[log->node_count] = (struct stack_log_node){node->outer, node->frame};
	}
	atomic_store_explicit(&place->frame_count, log->frame_count, memory_order_release);
	atomic_store_explicit(&place->node_count, log->node_count, memory_order_release);
}

/* Writes a stack's entry, after its nodes. */
static struct stack_log_name name_of(struct stack_log *log, uint32_t stack)
{
	if (stack >= log->node_count)
		write_tree(log);
	return (struct stack_log_name){stack < log->node_count ? stack : 0, log->epoch};
}

void stack_log_block(struct stack_log *log, uint32_t slot, uint64_t seq, uint32_t stack)
{
	struct stack_log_slot *entry = region_stack_log_slot(log->region, slot);

	if (!entry || !is_open(log))
		return;
	const struct stack_log_name name = name_of(log, stack);
	if (entry->stack.epoch == name.epoch && entry->seq_plus_1 > seq + 1)
		return; /* the stack of an older block, which comes late */
	/* We may be killed between any two of these. */
	entry->seq_plus_1 = 0;
	atomic_signal_fence(memory_order_seq_cst);
	entry->stack = name;
	atomic_signal_fence(memory_order_seq_cst);
	entry->seq_plus_1 = seq + 1;
}

void stack_log_walked(struct stack_log *log, uint32_t number, uint32_t stack)
{
	if (number < WALK_STACKS && is_open(log))
		place_of(log)->walked[number] = name_of(log, stack);
}

uint64_t stack_log_bytes(const struct stack_log *log, uint32_t segments)
{
	return log->frame_count * sizeof(struct stack_log_frame) +
	    log->node_count * sizeof(struct stack_log_node) +
	    (uint64_t)segments * REGION_SEGMENT_SLOTS * sizeof(struct stack_log_slot);
}

void stack_log_renew(struct stack_log *log)
{
	log->waits = log->open = false;
	(void)is_open(log);
}

/* ---- reading */

int stack_log_open(struct stack_log_reader *reader, const struct stack_log *log, struct maps *maps)
{
	*reader = (struct stack_log_reader){.log = log, .maps = maps};
	const struct stack_log_place *place = place_of(log);
	if (!place)
		return -ENOENT;
	reader->epoch = atomic_load(&place->epoch);
	reader->node_count = atomic_load_explicit(&place->node_count, memory_order_acquire);
	reader->frame_count = atomic_load_explicit(&place->frame_count, memory_order_acquire);
	if (reader->node_count <= 1 || reader->node_count > STACK_LOG_NODES || reader->frame_count == 0 ||
	    reader->frame_count > STACK_LOG_FRAMES)
		return -ENOENT;
	/* A sampler that has written so many has written all of them. */
	if (!region_is_written(log->region, place->frames, reader->frame_count * sizeof(*place->frames)) ||
	    !region_is_written(log->region, place->nodes, reader->node_count * sizeof(*place->nodes)))
		return -ENOENT;
	reader->frames = malloc(reader->frame_count * sizeof(*reader->frames));
	reader->nodes = malloc(reader->node_count * sizeof(*reader->nodes));
	reader->stacks = calloc(reader->node_count, sizeof(*reader->stacks));
	reader->path = malloc(reader->node_count * sizeof(*reader->path));
	if (!reader->frames || !reader->nodes || !reader->stacks || !reader->path) {
		stack_log_close(reader);
		return -ENOMEM;
	}
	memcpy(reader->frames, place->frames, reader->frame_count * sizeof(*reader->frames));
	memcpy(reader->nodes, place->nodes, reader->node_count * sizeof(*reader->nodes));
	return 0;
}

void stack_log_close(struct stack_log_reader *reader)
{
	free(reader->frames);
	free(reader->nodes);
	free(reader->stacks);
	free(reader->path);
	*reader = (struct stack_log_reader){0};
}

/* The number of a stack in the process' own table: a frame within an outer stack. */
static uint32_t add(struct stack_log_reader *reader, uint32_t outer, const struct stack_log_frame *from)
{
	struct stack_frame frame = {.pc = from->pc};
	struct stack_mapping mapping = {.kind = MAP_KIND_SPECIAL};

	if (from->mapping == STACK_LOG_MARKER) {
		frame.pc = 0;
		frame.marker = marker_text(from->pc);
		if (!frame.marker)
			return NOT_KNOWN;
	} else {
		mapping = mapping_at(reader->maps, from->pc, &frame.vaddr);
		if (fingerprint(&mapping) != from->mapping)
			return NOT_KNOWN;
	}
	return stacks_add(reader->log->stacks, outer, &frame, &mapping);
}

/* Restores the outer nodes first. Each has a smaller number than the nodes within it, so the loop ends. A
 * node that cannot be restored is remembered too, so that each node is looked at once. */
static uint32_t restore(struct stack_log_reader *reader, uint32_t wanted)
{
	uint32_t depth = 0, outer = STACK_ROOT;

	for (uint32_t node = wanted; node != STACK_ROOT; node = reader->nodes[node].outer) {
		if (reader->stacks[node]) {
			outer = reader->stacks[node] == NOT_KNOWN ? NOT_KNOWN : reader->stacks[node] - 1;
			break;
		}
		reader->path[depth++] = node;
		if (reader->nodes[node].outer >= node || reader->nodes[node].frame >= reader->frame_count) {
			outer = NOT_KNOWN;
			break;
		}
	}
	while (depth > 0) {
		uint32_t node = reader->path[--depth];

		if (outer != NOT_KNOWN)
			outer = add(reader, outer, &reader->frames[reader->nodes[node].frame]);
		reader->stacks[node] = outer == NOT_KNOWN ? NOT_KNOWN : outer + 1;
	}
	return outer;
}

/* Reads each word once: the target may change it between two readings. */
static struct stack_log_name read_name(const struct stack_log_name *from)
{
	const volatile struct stack_log_name *shared = from;

	return (struct stack_log_name){.node = shared->node, .epoch = shared->epoch};
}

uint32_t stack_log_find(struct stack_log_reader *reader, uint32_t slot, const struct slot_copy *block)
{
	const struct stack_log_slot *entry = region_stack_log_slot(reader->log->region, slot);
	struct stack_log_name name = {0};

	if (!reader->nodes || !entry)
		return NOT_KNOWN;
	const struct region *region = reader->log->region;
	const struct stack_log_name *walked =
	    &place_of(reader->log)->walked[block->sample.stack % WALK_STACKS];
	if (region_is_written(region, entry, sizeof(*entry)) && entry->seq_plus_1 == block->seq + 1)
		name = read_name(&entry->stack);
	else if (block->sample.stack && !(block->flags & SLOT_INHERITED) &&
	    region_is_written(region, walked, sizeof(*walked)))
		name = read_name(walked);
	return name.epoch == reader->epoch && name.node && name.node < reader->node_count
	    ? restore(reader, name.node)
	    : NOT_KNOWN;
}

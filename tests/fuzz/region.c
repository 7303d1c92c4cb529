/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region that a target has filled with what it likes, read by everything that reads regions: taking it
 * over (the header, the books of an earlier sampler, its log of stacks), processes and their children, stack
 * buffers, frees, live scans, views, and giving places back.
 *
 * Each input begins with a region as a real target leaves it: a program and a forked child, eleven blocks
 * live or freed, a peak, one stack, three frees. The input changes it: an area (one byte), an offset in it
 * (two), a length (one), so many bytes; and so on. Pids are forced to 0, or it would read other processes.
 */
#include "proto/buffer.h"
#include "sampler/books/adoption.h"
#include "sampler/books/drain.h"
#include "sampler/books/heap_view.h"
#include "sampler/books/intake.h"
#include "sampler/books/program_run.h"
#include "sampler/books/walked.h"
#include "sampler/intake/live_scan.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KEY = 0x10000, PLACES = 4, SLOTS = 64, FREES = 64, BUFFERS = 2, AREAS = 15, LOGGED = 256 };

static struct region genuine;
static struct modules *store;
static struct memory_bound memory;
static struct intake intake;
static struct area {
	uint64_t offset;
	size_t bytes;
	unsigned char *content;
} areas[AREAS];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *at(uint64_t offset)
{
	return genuine.base + offset;
}

static void fill_slot(struct region_slot *slot, uint64_t seq, enum slot_state state)
{
	*slot = (struct region_slot){
	    .sample = {.size_bytes = seq * 100, .period_bytes = 4096, .time_ns = seq, .tid = 1}};
	if (state == SLOT_FREED)
		slot->freed_order = seq + 20;
	atomic_store(&slot->word, slot_word(seq, state));
}

static void fill(void)
{
	struct region_header *header = region_header(&genuine);

	atomic_store(&header->state, REGION_READY);
	atomic_store(&header->places_claimed, 1);
	for (uint32_t i = 0; i < 2; i++) {
		struct region_place *place = region_place(&genuine, i);

		place->parent = i;
		place->inherited = i;
		atomic_store(&place->next_seq, 30);
		atomic_store(&place->allocated.samples, 11);
		atomic_store(&place->allocated.bytes_q8, 11 * 4096 * 256);
		atomic_store(&place->live.samples, 8);
		atomic_store(&place->peak_order, 12);
		atomic_store(&place->peak_samples, 9);
		atomic_store(&place->state, PLACE_READY);
	}
	_Atomic uint16_t *owners = at(genuine.offsets.owners);
	atomic_store(&owners[0], 1);
	atomic_store(&owners[1], 2);
	struct region_segment *segments = at(genuine.offsets.segments);
	struct region_slot *slots = segments[0].slots, *kept = segments[0].kept;
	for (uint32_t i = 0; i < 11; i++)
		fill_slot(&slots[i], i + 1, i < 8 ? SLOT_LIVE : SLOT_FREED);
	fill_slot(&kept[2], 1, SLOT_FREED);
	segments[1].slots[0] = slots[0];
	segments[1].slots[0].flags = SLOT_INHERITED;
	segments[1].slots[0].sample.seq = 1;
	struct region_free *frees = at(genuine.offsets.frees);
	for (uint32_t i = 0; i < 3; i++) {
		frees[i] = (struct region_free){
		    .sample = {.seq = i + 9, .size_bytes = 100, .period_bytes = 4096, .slot = i + 8},
		    .freed_ns = 50};
		atomic_store(&frees[i].word, i + 1);
	}
	atomic_store(&header->frees_head, 3);
	struct region_buffer *buffer = at(genuine.offsets.buffers + BUFFER_BITMAPS_BYTES);
	*buffer = (struct region_buffer){
	    .sample = {.seq = 1, .size_bytes = 100, .period_bytes = 4096, .tid = 1}, .stack_bytes = 512};
	atomic_store(&buffer->word, buffer_word(BUFFER_FULL, 0));
	atomic_store((_Atomic uint64_t *)at(genuine.offsets.buffers), 1);
	atomic_store(&header->copied, 1);
}

/* As an earlier sampler has left it: two blocks, and the number of a walked stack. */
static void fill_stack_log(void)
{
	const struct stack_mapping nothing = {.start = 4096, .end = 8192, .kind = MAP_KIND_SPECIAL};
	const struct stack_frame inner = {.pc = 5000, .vaddr = 5000}, outer = {.pc = 6000, .vaddr = 6000};
	struct stacks *stacks = stacks_new();
	struct stack_log log;

	if (!stacks)
		abort();
	uint32_t stack = stacks_intern(stacks, NULL, 0, unwind_marker(UNWIND_TRUNCATED), NULL);
	stack = stacks_add(stacks, stack, &outer, &nothing);
	stack_log_init(&log, &genuine, 0, stacks);
	stack_log_block(&log, 0, 1, stack);
	stack = stacks_add(stacks, stack, &inner, &nothing);
	stack_log_block(&log, 1, 2, stack);
	stack_log_walked(&log, 3, stack);
	stacks_unref(stacks);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct region_options options = {
	    .period_bytes = 4096, .dump_bytes = 32768, .live_max = 2 * REGION_SEGMENT_SLOTS};

	store = modules_new(16);
	if (!store || region_open(&genuine, 1, KEY, &options) != 0 ||
	    intake_init(&intake, store, &memory, regs_arch_native()->perf_mask, false) != 0)
		abort();
	fill();
	fill_stack_log();
	const struct area where[AREAS] = {
	    {.offset = 0, .bytes = sizeof(struct region_header)},
	    {.offset = genuine.offsets.places, .bytes = PLACES * sizeof(struct region_place)},
	    {.offset = genuine.offsets.modules, .bytes = 4096},
	    {.offset = genuine.offsets.owners, .bytes = 64},
	    {.offset = genuine.offsets.buffers,
	        .bytes = BUFFER_BITMAPS_BYTES + (size_t)BUFFERS * buffer_class[0].bytes},
	    {.offset = genuine.offsets.frees, .bytes = FREES * sizeof(struct region_free)},
	    {.offset = genuine.offsets.segments, .bytes = SLOTS * sizeof(struct region_slot)},
	    {.offset = genuine.offsets.segments + offsetof(struct region_segment, kept),
	        .bytes = SLOTS * sizeof(struct region_slot)},
	    {.offset = genuine.offsets.dropped_buffers,
	        .bytes = BUFFER_BITMAPS_BYTES + (size_t)BUFFERS * buffer_class[0].bytes},
	    {.offset = genuine.offsets.stack_log, .bytes = LOGGED},
	    {.offset = genuine.offsets.stack_log + offsetof(struct stack_log_place, nodes), .bytes = LOGGED},
	    {.offset = genuine.offsets.stack_log + offsetof(struct stack_log_place, walked), .bytes = LOGGED},
	    {.offset = genuine.offsets.segments + offsetof(struct region_segment, logged), .bytes = LOGGED},
	    {.offset = genuine.offsets.walk, .bytes = LOGGED},
	    {.offset = genuine.offsets.walk + offsetof(struct walk_area, counts),
	        .bytes = 2 * sizeof(uint64_t)},
	};
	memcpy(areas, where, sizeof(areas));
	for (int i = 0; i < AREAS; i++) {
		areas[i].content = malloc(areas[i].bytes);
		if (!areas[i].content)
			abort();
		memcpy(areas[i].content, at(areas[i].offset), areas[i].bytes);
	}
	return 0;
}

static void change(const uint8_t *data, size_t size)
{
	for (int i = 0; i < AREAS; i++)
		memcpy(at(areas[i].offset), areas[i].content, areas[i].bytes);
	while (size > 4) {
		const struct area *area = &areas[data[0] % AREAS];
		size_t offset = (size_t)(data[1] | data[2] << 8) % area->bytes, bytes = data[3];

		data += 4;
		size -= 4;
		bytes = bytes < size ? bytes : size;
		bytes = bytes < area->bytes - offset ? bytes : area->bytes - offset;
		memcpy(at(area->offset + offset), data, bytes);
		data += bytes;
		size -= bytes;
	}
	region_header(&genuine)->pid = 0;
	for (uint32_t i = 0; i < REGION_PLACES; i++)
		region_place(&genuine, i)->pid = 0;
}

static void look_at(struct process *process, const struct live_scan *scan)
{
	for (int kind = HEAP_VIEW_LIVE; kind <= HEAP_VIEW_DELTA; kind++) {
		struct heap_view view;

		if (heap_view_make(&view, (enum heap_view_kind)kind, process->heap, scan) != 0)
			continue;
		for (size_t i = 0; i < view.count; i++)
			if (view.rows[i].key.stack != UINT32_MAX &&
			    view.rows[i].key.stack >= stacks_node_count(process->target.stacks))
				abort();
		heap_view_fini(&view);
	}
}

static void read_all(struct program_run *run)
{
	for (uint32_t i = 0; i < PLACES; i++)
		if (program_run_meet(run, i, store))
			adoption_begin(run->places.at[i]);
	drain_note_frees(run);
	intake_buffers(&intake, run, UINT64_MAX);
	walked_drain(run, false);
	drain_frees(run, 1000000);
	for (uint32_t i = 0; i < PLACES; i++) {
		struct process *process = run->places.at[i];
		struct live_scan scan;

		if (!process)
			continue;
		adoption_enter(process);
		process_inherit(process);
		if (live_scan_take(&scan, run->region, i) == 0)
			look_at(process, &scan);
		live_scan_fini(&scan);
		heap_mark(process->heap, region_read_tally(&region_place(run->region, i)->allocated), 7);
		process_samples(process);
	}
	region_placeless(run->region);
	region_not_cut_off(run->region);
	region_not_afforded(run->region);
	char unseen[REGION_PATH_BYTES];
	(void)region_unseen_files(run->region, unseen);
	region_declined_text(run->region);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct region *region = calloc(1, sizeof(*region));

	if (!region)
		return 0;
	change(data, size);
	int fd = dup(genuine.fd);
	if (region_reopen(region, fd, false) != 0) {
		close(fd);
		free(region);
		return 0;
	}
	if (region_add_buffers(region, dup(genuine.buffers_fd)) != 0)
		abort();
	if (region->offsets.end != genuine.offsets.end || region->segments != genuine.segments)
		abort();
	struct program_run *run = program_run_new(region, 0);
	if (!run)
		return 0;
	run->heap = (struct heap_options){.labels = HEAP_LABEL_LIFETIME, .deltas = true};
	run->life.state = RUN_ADOPTING;
	walked_begin(run);
	if (books_add_run(&intake.books, run) != 0)
		abort();
	read_all(run);
	for (uint32_t i = 0; i < REGION_PLACES; i++)
		if (run->places.at[i]) {
			region_release_place(run->region, i);
			program_run_free_process(run->places.at[i]);
		}
	if (run->places.live)
		abort();
	books_remove_run(run);
	walked_free(run);
	program_run_free(run);
	return 0;
}

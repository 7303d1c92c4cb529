/* SPDX-License-Identifier: Apache-2.0 */
/* What a program run has written into its region: slots, frees, stack buffers, numbers and words. The run may
 * be writing a slot or a free while it is copied: a copy counts only if its word is the same before and
 * after. */
#include "sampler/intake/region.h"

#include "pprof/text/utf8.h"
#include "proto/buffer.h"
#include "sampler/intake/sparse_run.h"

#include <stdatomic.h>
#include <string.h>

/* ---- slots and frees */

static struct region_slot *slot_at(const struct region *region, uint32_t slot)
{
	return &region_segments(region)[slot / REGION_SEGMENT_SLOTS].slots[slot % REGION_SEGMENT_SLOTS];
}

static struct region_slot *kept_at(const struct region *region, uint32_t slot)
{
	return &region_segments(region)[slot / REGION_SEGMENT_SLOTS].kept[slot % REGION_SEGMENT_SLOTS];
}

static const _Atomic uint64_t *address_at(const struct region *region, uint32_t slot)
{
	return &region_segments(region)[slot / REGION_SEGMENT_SLOTS].addresses[slot % REGION_SEGMENT_SLOTS];
}

/* address: NULL: not known */
static bool copy_slot(const struct region_slot *from, const _Atomic uint64_t *address, struct slot_copy *copy)
{
	uint64_t word = atomic_load_explicit(&from->word, memory_order_acquire);
	enum slot_state state = slot_word_state(word);

	if (state != SLOT_LIVE && state != SLOT_FREED)
		return false;
	/* While the word still says that it is live, the owner may be storing the free's order number. */
	uint64_t freed_order = atomic_load_explicit(&from->freed_order, memory_order_relaxed);
	*copy = (struct slot_copy){
	    .seq = slot_word_seq(word),
	    .state = state,
	    .freed_order = state == SLOT_FREED ? freed_order : 0,
	    .address = address ? atomic_load_explicit(address, memory_order_relaxed) : 0,
	    .sample = from->sample,
	    .origin_place = from->origin_place,
	    .unmapped_pages = atomic_load_explicit(&from->unmapped_pages, memory_order_relaxed),
	    .flags = from->flags,
	};
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&from->word, memory_order_relaxed) == word;
}

bool region_read_slot(const struct region *region, uint32_t slot, struct slot_copy *copy)
{
	return region_read_any(region, slot, copy) && copy->state == SLOT_LIVE;
}

bool region_read_any(const struct region *region, uint32_t slot, struct slot_copy *copy)
{
	return slot < region->segments * (uint32_t)REGION_SEGMENT_SLOTS &&
	    copy_slot(slot_at(region, slot), address_at(region, slot), copy);
}

bool region_read_kept(const struct region *region, uint32_t slot, struct slot_copy *copy)
{
	return slot < region->segments * (uint32_t)REGION_SEGMENT_SLOTS &&
	    copy_slot(kept_at(region, slot), NULL, copy);
}

bool region_kept_is_there(const struct region *region, uint32_t slot)
{
	return region_is_written(region, kept_at(region, slot), sizeof(struct region_slot));
}

struct weight region_weight(const struct slot_copy *copy)
{
	uint64_t gone = (uint64_t)copy->unmapped_pages * REGION_PAGE_BYTES;
	uint64_t size = copy->sample.size_bytes;

	return weight_of_part(size, gone < size ? size - gone : 0, copy->sample.period_bytes);
}

bool region_read_free(const struct region *region, uint64_t number, struct free_copy *copy)
{
	const struct region_free *from =
	    (const struct region_free *)(void *)(region->base + region->offsets.frees) +
	    number % REGION_FREES;

	if (atomic_load_explicit(&from->word, memory_order_acquire) != number + 1)
		return false;
	*copy = (struct free_copy){
	    .sample = from->sample,
	    .freed_ns = from->freed_ns,
	    .freed_tid = from->freed_tid,
	    .place = from->place,
	};
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&from->word, memory_order_relaxed) == number + 1;
}

/* ---- stack buffers */

/* Prefetches header and innermost frames of the buffer after next, among those whose bits are set: another
 * CPU has just written them. */
static void prefetch_ahead(const unsigned char *first, uint64_t bits, uint32_t bytes)
{
	enum { LINE_BYTES = 64, BEGINNING_BYTES = 512 };

	bits &= bits - 1;
	bits &= bits - 1;
	for (size_t i = 0; bits && i < BEGINNING_BYTES; i += LINE_BYTES)
		__builtin_prefetch(first + (size_t)__builtin_ctzll(bits) * bytes + i);
}

/* The lowest buffer whose bit is set, or NULL. */
static struct region_buffer *buffer_of(unsigned char *first, uint64_t bits, uint32_t class)
{
	return bits ? (struct region_buffer *)(void *)(first +
	                  (size_t)__builtin_ctzll(bits) * buffer_class[class].bytes)
	            : NULL;
}

/* Calls `visit` for every buffer whose bit is set; if it returns true, the buffer is freed. All buffers of
 * one word are freed at once, since the word's cache line moves between us and the target; but large ones
 * singly, since they are few and take long. Returns how many were freed. */
enum { LARGE_BYTES = 65536 };

/* Of the buffers whose bits are set, those in which something was written; and how much can be read of each
 * from its beginning on, up to the first page that was not: whoever has copied a stack has written it all. */
static uint64_t buffers_there(const struct region *region, const unsigned char *first, uint64_t taken,
    uint32_t bytes, uint32_t there[64])
{
	struct sparse_run run = {0};
	uint64_t mask = 0;

	for (; taken; taken &= taken - 1) {
		const int number = __builtin_ctzll(taken);
		uint64_t offset = (uint64_t)(first - region->base) + (uint64_t)number * bytes;
		const int fd = region_file_at(region, &offset);

		there[number] = bytes;
		if (region->sparse) {
			if (!sparse_run_has(&run, fd, offset / REGION_PAGE_BYTES * REGION_PAGE_BYTES))
				continue;
			if (run.end - offset < bytes)
				there[number] = (uint32_t)(run.end - offset);
		}
		mask |= taken & -taken;
	}
	return mask;
}

static size_t visit_area(const struct region *region, bool dropped,
    bool (*visit)(void *context, struct region_buffer *buffer, const struct region_buffer *next, size_t room),
    void *context)
{
	size_t count = 0;
	const uint64_t area = dropped ? region->offsets.dropped_buffers : region->offsets.buffers;
	_Atomic uint64_t *bitmap = (_Atomic uint64_t *)(void *)(region->base + area);
	unsigned char *buffers = region->base + area + BUFFER_BITMAPS_BYTES;
	uint32_t there[64];

	/* Few program runs have children that change their user id. Of others, to read the bitmaps would make
	 * a page of them. */
	if (dropped && region->sparse && !sparse_run_has(&(struct sparse_run){0}, region->fd, area))
		return 0;
	for (uint32_t c = 0; c < BUFFER_CLASSES; c++) {
		const uint32_t all = buffer_count(c, region->large_buffers, dropped),
		               words = buffer_words(all);

		for (uint32_t word = 0; word < words; word++) {
			uint64_t taken = atomic_load_explicit(&bitmap[word], memory_order_acquire) &
			    buffer_bits(all, word);
			uint64_t done = 0;
			unsigned char *first = buffers + word * 64u * (size_t)buffer_class[c].bytes;

			taken = buffers_there(region, first, taken, buffer_class[c].bytes, there);
			for (; taken; taken &= taken - 1) {
				struct region_buffer *buffer = buffer_of(first, taken, c);
				const uint32_t bytes = there[__builtin_ctzll(taken)];

				prefetch_ahead(first, taken, buffer_class[c].bytes);
				if (!visit(context, buffer, buffer_of(first, taken & (taken - 1), c),
				        bytes - sizeof(*buffer)))
					continue;
				atomic_store_explicit(&buffer->word, BUFFER_FREE, memory_order_relaxed);
				done |= taken & -taken;
				count++;
				if (buffer_class[c].bytes < LARGE_BYTES)
					continue;
				atomic_fetch_and_explicit(&bitmap[word], ~done, memory_order_release);
				done = 0;
			}
			if (done)
				atomic_fetch_and_explicit(&bitmap[word], ~done, memory_order_release);
		}
		bitmap += words;
		buffers += (size_t)all * buffer_class[c].bytes;
	}
	return count;
}

static size_t visit_buffers(const struct region *region,
    bool (*visit)(void *context, struct region_buffer *buffer, const struct region_buffer *next, size_t room),
    void *context)
{
	return visit_area(region, false, visit, context) + visit_area(region, true, visit, context);
}

static bool drain_one(
    void *context, struct region_buffer *buffer, const struct region_buffer *next, size_t room)
{
	const struct region_drain *drain = context;
	struct region_buffer header;

	if ((atomic_load_explicit(&buffer->word, memory_order_acquire) & BUFFER_STATE_MASK) != BUFFER_FULL)
		return false;
	if (next && drain->ahead)
		drain->ahead(drain->context, next, room);
	memcpy(&header, buffer, sizeof(header));
	return drain->taken(drain->context, &header, (unsigned char *)(buffer + 1), room);
}

size_t region_drain_buffers(const struct region *region, const struct region_drain *drain)
{
	return visit_buffers(region, drain_one, (void *)(uintptr_t)drain);
}

static bool half_written_by(
    void *context, struct region_buffer *buffer, const struct region_buffer *next, size_t room)
{
	(void)next;
	(void)room;
	return atomic_load_explicit(&buffer->word, memory_order_acquire) ==
	    buffer_word(BUFFER_WRITING, *(uint32_t *)context);
}

void region_free_half_written(const struct region *region, uint32_t place)
{
	visit_buffers(region, half_written_by, &place);
}

/* ---- numbers and words */

struct tally region_read_tally(const struct region_tally *tally)
{
	return (struct tally){
	    .samples = atomic_load_explicit(&tally->samples, memory_order_relaxed),
	    .bytes_q8 = atomic_load_explicit(&tally->bytes_q8, memory_order_relaxed),
	    .objects_q16 = atomic_load_explicit(&tally->objects_q16, memory_order_relaxed),
	};
}

double region_live_variance(const struct region_place *place)
{
	const double small = (double)(int64_t)atomic_load(&place->live_variance),
	             large = (double)(int64_t)atomic_load(&place->live_large_variance);

	return (small > 0 ? small : 0) + (large > 0 ? large * WEIGHT_LARGE_UNIT : 0);
}

uint64_t region_placeless(const struct region *region)
{
	return atomic_load_explicit(&region_header(region)->places_exhausted, memory_order_relaxed);
}

uint64_t region_not_cut_off(const struct region *region)
{
	return atomic_load_explicit(&region_header(region)->not_cut_off, memory_order_relaxed);
}

uint64_t region_not_afforded(const struct region *region)
{
	return atomic_load_explicit(&region_header(region)->not_afforded, memory_order_relaxed);
}

const char *region_declined_text(const struct region *region)
{
	const struct region_header *header = region_header(region);

	if (atomic_load_explicit(&header->state, memory_order_acquire) != REGION_DECLINED)
		return NULL;
	switch ((enum region_declined)header->declined) {
	case REGION_DECLINED_NO_MEMORY:
		return "its limit of address space or of data (ulimit -v, ulimit -d) leaves no room for the "
		       "profiler's memory";
	case REGION_DECLINED_NO_FORK_NOTICE:
		return "the library has no means to notice a fork";
	case REGION_DECLINED_OVERCOMMIT:
		return "the kernel may refuse a page of the profiler's memory when it is used, which would "
		       "end the program (vm.overcommit_memory is 2)";
	case REGION_DECLINED_SANITIZER:
		return "the runtime of gcc's ThreadSanitizer must be ready before the library is";
	default:
		return "for an unknown reason";
	}
}

void region_program_path(const struct region *region, char path[REGION_PATH_BYTES])
{
	struct region_module first;
	const unsigned char *at = region->base + region->offsets.modules;

	memcpy(&first, at, sizeof(first));
	memcpy(path, at + sizeof(first), REGION_PATH_BYTES);
	path[first.path_bytes >= 1 && first.path_bytes <= REGION_PATH_BYTES ? first.path_bytes - 1 : 0] =
	    '\0';
}

void region_program_command_line(const struct region *region, char line[REGION_COMMAND_LINE_BYTES])
{
	memcpy(line, region->base + region->offsets.command_line, REGION_COMMAND_LINE_BYTES);
	line[REGION_COMMAND_LINE_BYTES - 1] = '\0';
}

bool region_unseen_malloc(const struct region *region)
{
	return region_header(region)->unseen & REGION_UNSEEN_MALLOC;
}

bool region_unseen_files(const struct region *region, char files[REGION_PATH_BYTES])
{
	const struct region_header *header = region_header(region);

	files[0] = '\0';
	if (!(header->unseen & REGION_UNSEEN_FILES))
		return false;
	memcpy(files, header->unseen_files, REGION_PATH_BYTES);
	files[REGION_PATH_BYTES - 1] = '\0';
	utf8_disarm(files, strlen(files));
	return files[0];
}

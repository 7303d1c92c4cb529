/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/heap.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"
#include "sampler/perf/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SITES_MAX = 1 << 23 }; /* only a hostile target has more */

/* The last two blocks of a slot, and the block that belongs to the peak. A forked child may need the block
 * that was in its parent's slot before the present one. */
struct slot_memory {
	uint64_t seq_plus_1, before_plus_1, kept_plus_1;
	uint32_t site, before_site, kept_site;
};

/* Blocks whose slot has been reused twice: in a burst their frees are read only after that. A cache, indexed
 * by hash. */
struct departed {
	uint64_t seq_plus_1;
	uint32_t slot, site;
};
enum { DEPARTED = 2 * REGION_FREES };

struct heap {
	const struct region *region;
	struct heap_options options;
	struct slot_memory **memory; /* by segment, made when first needed */
	struct departed *departed;   /* likewise made when first needed */
	struct heap_site *sites;
	struct tally *site_temporary; /* by site, with HEAP_LABEL_LIFETIME */
	struct tally *site_marked;    /* by site, with options.deltas: up to the last heap_mark */
	size_t site_room, temporary_room, marked_room;
	uint32_t site_count;
	struct index index; /* of sites, ids from 1 */
	uint64_t seed;
	struct tally total; /* of all sites */
	/* What was counted before these books began, and how much of what was sampled before has arrived
	 * since. */
	struct tally began, since;
	uint64_t began_ns; /* 0: with the process, or heap_adopt() has entered all of it */
	uint64_t period_bytes;
	struct heap_mark mark;
	struct lifetime lifetimes;
	uint32_t segments_known; /* that have memory */
	uint32_t *walked_site;   /* by the number of a walked stack: site + 1 */
	size_t walked_room;
	bool full; /* see heap_set_full() */
};

struct heap *heap_new(const struct region *region, const struct heap_options *options)
{
	struct heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return NULL;
	heap->region = region;
	heap->options = *options;
	heap->seed = index_seed();
	heap->memory = calloc(region->segments, sizeof(*heap->memory));
	if (!heap->memory) {
		free(heap);
		return NULL;
	}
	return heap;
}

void heap_free(struct heap *heap)
{
	if (!heap)
		return;
	for (uint32_t i = 0; i < heap->region->segments; i++)
		free(heap->memory[i]);
	free(heap->memory);
	free(heap->departed);
	free(heap->walked_site);
	free(heap->sites);
	free(heap->site_temporary);
	free(heap->site_marked);
	index_fini(&heap->index);
	free(heap);
}

const struct heap_options *heap_options(const struct heap *heap)
{
	return &heap->options;
}

/* ---- slots */

static struct slot_memory *memory_of(const struct heap *heap, uint32_t slot)
{
	uint32_t segment = slot / REGION_SEGMENT_SLOTS;

	if (segment >= heap->region->segments || !heap->memory[segment])
		return NULL;
	return &heap->memory[segment][slot % REGION_SEGMENT_SLOTS];
}

static uint32_t memory_find(const struct slot_memory *memory, uint64_t seq)
{
	if (memory && memory->seq_plus_1 == seq + 1)
		return memory->site;
	if (memory && memory->before_plus_1 == seq + 1)
		return memory->before_site;
	if (memory && memory->kept_plus_1 == seq + 1)
		return memory->kept_site;
	return HEAP_NO_SITE;
}

static uint32_t walked_find(const struct heap *heap, uint32_t number)
{
	return number < heap->walked_room && heap->walked_site[number] ? heap->walked_site[number] - 1
	                                                               : HEAP_NO_SITE;
}

uint32_t heap_site_of(const struct heap *heap, uint32_t slot, uint64_t seq, uint32_t walked)
{
	return walked ? walked_find(heap, walked) : memory_find(memory_of(heap, slot), seq);
}

/* A block that was inherited at a fork is known by its slot, whether a dump or the hook found its stack. */
uint32_t heap_site_of_slot(const struct heap *heap, uint32_t slot, const struct slot_copy *block)
{
	bool inherited = block->flags & SLOT_INHERITED;
	uint32_t site = heap_site_of(heap, slot, block->seq, inherited ? 0 : (uint32_t)block->sample.stack);

	/* a number that an earlier sampler gave: its blocks are known by their slots too (adoption.h) */
	return site == HEAP_NO_SITE ? heap_site_of(heap, slot, block->seq, 0) : site;
}

static struct departed *departed_at(const struct heap *heap, uint32_t slot, uint64_t seq)
{
	return &heap->departed[(seq * 0x9e3779b97f4a7c15ull + slot) % DEPARTED];
}

/* For a block that is about to be forgotten, or that arrives late: keeps the block if the slot's entry for
 * the peak names it. */
static void keep(
    struct heap *heap, struct slot_memory *memory, uint32_t slot, uint64_t seq_plus_1, uint32_t site)
{
	struct slot_copy kept;

	if (!seq_plus_1)
		return;
	if (region_kept_is_there(heap->region, slot) && region_read_kept(heap->region, slot, &kept) &&
	    kept.seq + 1 == seq_plus_1) {
		memory->kept_plus_1 = seq_plus_1;
		memory->kept_site = site;
	}
	if (!heap->departed && !heap->full)
		heap->departed = calloc(DEPARTED, sizeof(*heap->departed));
	if (heap->departed)
		*departed_at(heap, slot, seq_plus_1 - 1) = (struct departed){seq_plus_1, slot, site};
}

/* Returns 0, -EEXIST for a sample that is in the books already, or -ENOMEM. */
static int remember(struct heap *heap, uint32_t slot, uint64_t seq, uint32_t site)
{
	uint32_t segment = slot / REGION_SEGMENT_SLOTS;

	if (segment >= heap->region->segments)
		return 0; /* has no slot: counted, not remembered */
	if (!heap->memory[segment]) {
		if (heap->full)
			return -ENOMEM;
		heap->memory[segment] = calloc(REGION_SEGMENT_SLOTS, sizeof(struct slot_memory));
		heap->segments_known += heap->memory[segment] != NULL;
	}
	struct slot_memory *memory = memory_of(heap, slot);
	if (!memory)
		return -ENOMEM;
	if (memory_find(memory, seq) != HEAP_NO_SITE)
		return -EEXIST;
	if (seq + 1 > memory->seq_plus_1) {
		keep(heap, memory, slot, memory->before_plus_1, memory->before_site);
		memory->before_plus_1 = memory->seq_plus_1;
		memory->before_site = memory->site;
		memory->seq_plus_1 = seq + 1;
		memory->site = site;
	} else if (seq + 1 > memory->before_plus_1) { /* late, from another CPU's ring */
		keep(heap, memory, slot, memory->before_plus_1, memory->before_site);
		memory->before_plus_1 = seq + 1;
		memory->before_site = site;
	} else {
		keep(heap, memory, slot, seq + 1, site);
	}
	return 0;
}

/* ---- sites */

static uint32_t size_class(uint64_t size_bytes)
{
	return size_bytes <= 1 ? 1 : 65 - (uint32_t)__builtin_clzll(size_bytes - 1);
}

static struct heap_key key_of(const struct heap *heap, const struct heap_sample *sample)
{
	struct heap_key key = {.stack = sample->stack, .mapped = sample->mapped, .origin = sample->origin};

	if (heap->options.labels & HEAP_LABEL_THREAD)
		key.tid = sample->tid;
	if (heap->options.labels & HEAP_LABEL_SIZE)
		key.size_class = size_class(sample->size_bytes);
	if (heap->options.labels & HEAP_LABEL_BACKEND)
		key.backend = sample->backend;
	return key;
}

_Static_assert(sizeof(struct heap_key) % sizeof(uint64_t) == 0, "hashed by words");

static uint32_t key_hash(const struct heap *heap, const struct heap_key *key)
{
	uint64_t words[sizeof(*key) / sizeof(uint64_t)], mixed = heap->seed;

	memcpy(words, key, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		mixed = index_mix(mixed, words[i]);
	return index_fold(mixed);
}

/* Makes room for one more site. Returns 0 or -ENOMEM. */
static int site_reserve(struct heap *heap)
{
	const size_t need = (size_t)heap->site_count + 1;
	int error = array_reserve(&heap->sites, &heap->site_room, need, sizeof(*heap->sites));

	if (!error && heap->options.labels & HEAP_LABEL_LIFETIME)
		error = array_reserve(
		    &heap->site_temporary, &heap->temporary_room, need, sizeof(*heap->site_temporary));
	if (!error && heap->options.deltas)
		error =
		    array_reserve(&heap->site_marked, &heap->marked_room, need, sizeof(*heap->site_marked));
	return error;
}

static uint32_t site_find(struct heap *heap, const struct heap_sample *sample)
{
	const struct heap_site fresh = {.key = key_of(heap, sample)};
	uint32_t hash = key_hash(heap, &fresh.key), id;
	size_t cursor = index_start(hash);

	while ((id = index_next(&heap->index, hash, &cursor)))
		if (memcmp(&heap->sites[id - 1].key, &fresh.key, sizeof(fresh.key)) == 0)
			return id - 1;
	if (heap->full || heap->site_count >= SITES_MAX || site_reserve(heap) != 0 ||
	    index_add(&heap->index, hash, heap->site_count + 1) != 0)
		return HEAP_NO_SITE;
	heap->sites[heap->site_count] = fresh;
	if (heap->options.labels & HEAP_LABEL_LIFETIME)
		heap->site_temporary[heap->site_count] = (struct tally){0};
	if (heap->options.deltas)
		heap->site_marked[heap->site_count] = (struct tally){0};
	return heap->site_count++;
}

/* At the last mark the sample was lost; now it has a site. */
static void note_older(struct heap *heap, uint32_t site, struct tally more)
{
	if (!heap->options.deltas)
		return;
	tally_add(&heap->site_marked[site], &more);
	heap->mark.lost = tally_excess(&heap->mark.lost, &more);
}

/* Whether the sample was taken before these books began: its stack was still in a buffer then. Without a
 * time that is unknown; a process that has no clock has no times at all. */
static bool is_older(const struct heap *heap, const struct heap_sample *sample)
{
	return sample->time_ns && sample->time_ns < heap->began_ns;
}

static int add(struct heap *heap, const struct heap_sample *sample, bool older)
{
	struct weight weight = weight_of(sample->size_bytes, sample->period_bytes);
	uint32_t site = site_find(heap, sample);
	int error = site == HEAP_NO_SITE ? -ENOMEM : remember(heap, sample->slot, sample->seq, site);

	if (error)
		return error;
	tally_count(&heap->sites[site].sums, weight);
	tally_count(&heap->total, weight);
	if (heap->began_ns && sample->time_ns >= heap->began_ns)
		tally_count(&heap->since, weight);
	if (older || is_older(heap, sample))
		note_older(heap, site, (struct tally){1, weight.bytes_q8, weight.objects_q16});
	heap_note_period(heap, sample->period_bytes);
	return 0;
}

int heap_add(struct heap *heap, const struct heap_sample *sample)
{
	return add(heap, sample, false);
}

int heap_add_older(struct heap *heap, const struct heap_sample *sample)
{
	return add(heap, sample, true);
}

int heap_add_walked(struct heap *heap, uint32_t number, uint32_t stack, struct tally more)
{
	const struct heap_sample sample = {.stack = stack, .backend = BACKEND_WALK};
	size_t room = heap->walked_room;
	uint32_t site = walked_find(heap, number);

	if (site == HEAP_NO_SITE)
		site = site_find(heap, &sample);
	if (site == HEAP_NO_SITE ||
	    array_reserve(&heap->walked_site, &heap->walked_room, number + 1, sizeof(*heap->walked_site)) !=
	        0)
		return -ENOMEM;
	memset(heap->walked_site + room, 0, (heap->walked_room - room) * sizeof(*heap->walked_site));
	heap->walked_site[number] = site + 1;
	tally_add(&heap->sites[site].sums, &more);
	tally_add(&heap->total, &more);
	if (heap->began_ns) /* numbers of an earlier sampler are used no longer */
		tally_add(&heap->since, &more);
	return 0;
}

void heap_set_full(struct heap *heap, bool full)
{
	heap->full = full;
}

uint64_t heap_bytes(const struct heap *heap)
{
	return sizeof(*heap) + heap->region->segments * sizeof(*heap->memory) +
	    heap->segments_known * REGION_SEGMENT_SLOTS * sizeof(struct slot_memory) +
	    (heap->departed ? DEPARTED * sizeof(*heap->departed) : 0) +
	    heap->walked_room * sizeof(*heap->walked_site) + heap->site_room * sizeof(*heap->sites) +
	    heap->temporary_room * sizeof(*heap->site_temporary) +
	    heap->marked_room * sizeof(*heap->site_marked) + index_bytes(&heap->index);
}

uint32_t heap_segments(const struct heap *heap)
{
	return heap->segments_known;
}

void heap_begin(struct heap *heap, struct tally counted, uint64_t now_ns)
{
	heap->began = counted;
	heap->began_ns = now_ns;
	heap_mark(heap, counted, now_ns);
}

uint64_t heap_adopt(struct heap *heap, uint32_t stack)
{
	const struct heap_sample anywhere = {.stack = stack};
	uint32_t site = site_find(heap, &anywhere);
	const struct tally known = tally_excess(&heap->total, &heap->since);
	const struct tally more = tally_excess(&heap->began, &known);

	if (site == HEAP_NO_SITE)
		return 0;
	tally_add(&heap->sites[site].sums, &more);
	tally_add(&heap->total, &more);
	note_older(heap, site, more);
	heap->began_ns = 0; /* else a target whose clock is not ours (a time namespace) might never be new */
	return more.samples;
}

int heap_inherit(struct heap *heap, const struct heap_sample *sample)
{
	uint32_t site = site_find(heap, sample);
	int error = site == HEAP_NO_SITE ? -ENOMEM : remember(heap, sample->slot, sample->seq, site);

	if (!error)
		heap_note_period(heap, sample->period_bytes);
	return error;
}

uint64_t heap_period_bytes(const struct heap *heap)
{
	return heap->period_bytes;
}

/* The target may have written the period, so it is limited as it is for a block's weight. */
void heap_note_period(struct heap *heap, uint64_t period_bytes)
{
	if (period_bytes > WEIGHT_PERIOD_MAX)
		period_bytes = WEIGHT_PERIOD_MAX;
	if (period_bytes > heap->period_bytes)
		heap->period_bytes = period_bytes;
}

uint32_t heap_site_count(const struct heap *heap)
{
	return heap->site_count;
}

const struct heap_site *heap_site(const struct heap *heap, uint32_t site)
{
	return &heap->sites[site];
}

struct tally heap_total(const struct heap *heap)
{
	return heap->total;
}

/* ---- lifetimes */

bool heap_freed(struct heap *heap, const struct free_copy *gone)
{
	uint32_t site = heap_site_of(heap, gone->sample.slot, gone->sample.seq, gone->sample.stack);

	if (site == HEAP_NO_SITE && heap->departed && !gone->sample.stack) {
		const struct departed *departed = departed_at(heap, gone->sample.slot, gone->sample.seq);

		if (departed->seq_plus_1 == gone->sample.seq + 1 && departed->slot == gone->sample.slot)
			site = departed->site;
	}
	uint64_t lived_ns = gone->freed_ns > gone->sample.time_ns ? gone->freed_ns - gone->sample.time_ns : 0;
	const struct lifetime_end end = {
	    .weight = weight_of(gone->sample.size_bytes, gone->sample.period_bytes),
	    .same_thread = gone->sample.tid == gone->freed_tid,
	    .temporary = gone->sample.tid == gone->freed_tid && lived_ns < heap->options.temporary_ns,
	};
	if (site == HEAP_NO_SITE)
		return false;
	if (end.temporary && heap->options.labels & HEAP_LABEL_LIFETIME)
		tally_count(&heap->site_temporary[site], end.weight);
	lifetime_add(&heap->lifetimes, &end);
	return true;
}

const struct lifetime *heap_lifetimes(const struct heap *heap)
{
	return &heap->lifetimes;
}

struct tally heap_site_temporary(const struct heap *heap, uint32_t site)
{
	return heap->options.labels & HEAP_LABEL_LIFETIME ? heap->site_temporary[site] : (struct tally){0};
}

/* ---- differences */

/* samples lost at once; more can only be claimed by a hostile process, and must not overflow below */
enum { SAMPLES_MAX = 1 << 30 };

struct tally heap_whole(struct tally sums)
{
	const uint64_t least_q16 = sums.samples << WEIGHT_OBJECTS_SHIFT;

	if (!sums.samples)
		return (struct tally){0};
	if (sums.objects_q16 < least_q16)
		sums.objects_q16 = least_q16;
	return sums;
}

struct tally heap_lost(const struct heap *heap, struct tally counted)
{
	const struct tally lost = tally_excess(&counted, &heap->total);

	if (lost.samples > SAMPLES_MAX)
		return (struct tally){0};
	return heap_whole(lost);
}

void heap_mark(struct heap *heap, struct tally counted, uint64_t now_ns)
{
	if (!heap->options.deltas)
		return;
	for (uint32_t i = 0; i < heap->site_count; i++)
		heap->site_marked[i] = heap->sites[i].sums;
	const struct tally lost = heap_lost(heap, counted), more = tally_excess(&lost, &heap->mark.lost);
	tally_add(&heap->mark.lost, &more);
	heap->mark.time_ns = now_ns;
}

const struct heap_mark *heap_last_mark(const struct heap *heap)
{
	return &heap->mark;
}

struct tally heap_site_marked(const struct heap *heap, uint32_t site)
{
	return heap->options.deltas ? heap->site_marked[site] : (struct tally){0};
}

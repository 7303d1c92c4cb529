/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/target.h"

#include "pprof/text/clock.h"
#include "sampler/intake/loader_log.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

uint64_t target_unmaps(const struct target *target)
{
	const struct region_place *place = target->past.source.place;

	return place ? atomic_load_explicit(&place->unmaps, memory_order_acquire) : 0;
}

void target_note_reading(struct target *target, uint64_t before)
{
	struct target_past *past = &target->past;

	past->read_at = before == target_unmaps(target) ? before : TARGET_PAST_UNKNOWN;
	past->readings++;
}

/* ---- who was there */

/* A library that was mapped at some time, as the process has noted it or as we have read it. */
struct candidate {
	uint64_t start, end;
	const struct loader_log_file *noted; /* NULL: the library was only read */
	const struct map *map;               /* NULL: the library was only noted */
};

enum { CANDIDATES = 2 * LOADER_LOG_FILES };

struct choosing {
	struct target *target;
	uint64_t at, count;
	struct loader_log_copy *log;
	bool noted; /* there are notes about that time */
	struct candidate candidate[CANDIDATES];
	size_t candidates;
};

static bool stays(const struct choosing *c, const struct map *map)
{
	const struct region_header *header = c->target->past.source.header;
	const uint32_t files = *(const volatile uint32_t *)&header->start_files;

	if (map->kind != MAP_KIND_FILE)
		return true;
	for (uint32_t i = 0; i < files && i < REGION_START_FILES; i++)
		if (map->start >= header->start_file[i].start && map->start < header->start_file[i].end)
			return true;
	return false;
}

static bool was_mapped(const struct loader_log_file *file, uint64_t count)
{
	return file->since <= count && count <= file->until;
}

/* The mapping at the library's start in maps of another time, if the library was mapped then and nothing
 * else can have been. */
static const struct map *find_in(const struct maps *maps, uint64_t of, const struct loader_log_file *file)
{
	if (!maps || of == TARGET_PAST_UNKNOWN || loader_log_calls(of) ||
	    !was_mapped(file, loader_log_count(of)))
		return NULL;
	const struct map *map = maps_find(maps, file->start);
	return map && map->kind == MAP_KIND_FILE && map->start == file->start &&
	        map->pgoff == file->file_offset
	    ? map
	    : NULL;
}

static void add_candidate(struct choosing *c, struct candidate candidate)
{
	if (c->candidates < CANDIDATES)
		c->candidate[c->candidates++] = candidate;
}

static void add_noted(struct choosing *c)
{
	const struct target_past *past = &c->target->past;

	/* Of the present time, which has not ended, only the libraries at its beginning are noted. */
	for (uint32_t i = 0; c->noted && i < c->log->files; i++) {
		const struct loader_log_file *file = &c->log->file[i];

		if (!was_mapped(file, c->count))
			continue;
		const struct map *map = find_in(c->target->maps, past->read_at, file);
		if (!map)
			map = find_in(past->maps, past->at, file);
		add_candidate(c, (struct candidate){file->start, file->end, file, map});
	}
}

static void add_read(struct choosing *c)
{
	const struct maps *maps = c->target->maps;

	for (size_t i = 0; c->target->past.read_at == c->at && i < maps_count(maps); i++) {
		const struct map *map = maps_at(maps, i);

		if (!stays(c, map))
			add_candidate(c, (struct candidate){map->start, map->end, NULL, map});
	}
}

static bool same_build_id(const struct loader_log_file *noted, const struct map *map)
{
	return map->module && noted->build_id_bytes &&
	    map->module->file.build_id_len == noted->build_id_bytes &&
	    memcmp(map->module->file.build_id, noted->build_id, noted->build_id_bytes) == 0;
}

static bool is_same(const struct candidate *a, const struct candidate *b)
{
	if (a->start != b->start)
		return false;
	if (a->noted && b->map)
		return same_build_id(a->noted, b->map);
	return a->map && b->noted && same_build_id(b->noted, a->map);
}

/* While dlclose runs, one library may have taken the place of another. */
static bool is_sure(const struct choosing *c, const struct candidate *one)
{
	if (loader_log_calls(c->at) && c->candidates == CANDIDATES)
		return false;
	for (size_t i = 0; loader_log_calls(c->at) && i < c->candidates; i++) {
		const struct candidate *other = &c->candidate[i];

		if (other != one && other->start < one->end && one->start < other->end &&
		    !is_same(one, other))
			return false;
	}
	return true;
}

/* ---- the maps */

/* To open a file costs as much as to read the maps, so it comes from the same share of time. */
static void open_noted(struct target *target, struct maps *maps, const struct loader_log_file *file)
{
	const uint64_t begin_cpu_ns = clock_thread_cpu_ns();
	const struct map_range range = {
	    .start = file->start,
	    .len = file->end - file->start,
	    .pgoff = file->file_offset,
	    .prot = PROT_READ | PROT_EXEC,
	    .path = file->path,
	    .build_id = file->build_id_bytes ? file->build_id : NULL,
	    .build_id_len = (uint8_t)file->build_id_bytes,
	    .listed = true,
	};

	if (!target_maps_allowed(target, clock_now_ns()))
		return;
	(void)maps_add(maps, &range);
	throttle_spend(&target->reading.work, clock_thread_cpu_ns() - begin_cpu_ns);
}

static struct maps *make_maps(struct choosing *c)
{
	const struct maps *base = c->target->maps;
	struct maps *maps = maps_new(maps_store(base), c->target->readable ? c->target->pid : 0, true);

	if (!maps)
		return NULL;
	maps_set_room(maps, c->target->maps_room_bytes);
	for (size_t i = 0; i < maps_count(base); i++)
		if (stays(c, maps_at(base, i)))
			(void)maps_share(maps, maps_at(base, i));
	for (size_t i = 0; i < c->candidates; i++) {
		const struct candidate *candidate = &c->candidate[i];

		if (!is_sure(c, candidate) || maps_find(maps, candidate->start))
			continue;
		if (candidate->map)
			(void)maps_share(maps, candidate->map);
		else
			open_noted(c->target, maps, candidate->noted);
	}
	return maps;
}

/* Whether there are notes of that time. For the present count, which has not ended: of its beginning. */
static bool read_notes(struct choosing *c, bool *whole)
{
	const struct target_past_source *source = &c->target->past.source;

	*whole = false;
	if (!source->log || c->count > source->log_until || !loader_log_read(source->log, c->log))
		return false;
	*whole = c->count < c->log->count;
	return c->count <= c->log->count && c->count >= c->log->whole_since &&
	    !(c->log->full && loader_log_calls(c->at));
}

static struct maps *choose(struct target *target, uint64_t unmaps)
{
	static struct loader_log_copy log;
	static struct choosing c;
	struct target_past *past = &target->past;
	bool whole;

	c = (struct choosing){.target = target, .at = unmaps, .count = loader_log_count(unmaps), .log = &log};
	c.noted = read_notes(&c, &whole);
	add_read(&c);
	add_noted(&c);
	struct maps *maps = make_maps(&c);
	if (!maps)
		return NULL;
	maps_free(past->maps);
	past->maps = maps;
	past->at = unmaps;
	past->of_reading = past->readings;
	past->whole = whole;
	return maps;
}

struct maps *target_maps_at(struct target *target, uint64_t unmaps)
{
	struct target_past *past = &target->past;

	if (!past->source.place || (unmaps == past->read_at && !loader_log_calls(unmaps)))
		return target->maps;
	/* The notes about a library do not change any more. */
	const bool same = past->maps && past->at == unmaps && past->of_reading == past->readings;
	if (same && (past->whole || target_unmaps(target) == unmaps))
		return past->maps;
	return choose(target, unmaps);
}

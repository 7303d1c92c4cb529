/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/maps.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"
#include "sampler/unwind/jit_rows.h"
#include "sampler/unwind/trampolines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	SCRATCH_AFTER = 16, /* lookups before an address space is worth a cache of its own */
};

struct maps {
	struct modules *store;
	pid_t pid;
	bool eager;
	struct map *map;
	size_t count, capacity;
	size_t room_bytes;             /* 0: no bound but the general one */
	size_t path_bytes;             /* of all ranges, as if each range had a path of its own */
	size_t copied_bytes;           /* likewise, of copies of the process' memory */
	uint64_t copies;               /* children that read the process' memory so far */
	uint64_t plain_dev, plain_ino; /* the last file in memory that was no ELF file */
	uint64_t generation;
	uint64_t read_hash, read_generation; /* of the last whole reading; 0: none */
	void *scratch;
	size_t scratch_len;
	uint64_t scratch_generation;
	unsigned scratch_asked;
	struct throttle cfi_work;
	struct jit_rows *jit_rows; /* a reference; NULL: none */
	uint64_t jit_rows_version;
};

struct maps *maps_new(struct modules *store, pid_t pid, bool eager)
{
	struct maps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return NULL;
	maps->store = store;
	maps->pid = pid;
	maps->eager = eager;
	maps->generation = 1;
	return maps;
}

static size_t copied_bytes(const struct map *map)
{
	return (map->module ? map->module->file.copied.bytes : 0) + trampolines_bytes(map->trampolines);
}

static void drop_map(struct maps *maps, struct map *map)
{
	maps->copied_bytes -= copied_bytes(map);
	module_unref(map->module);
	trampolines_unref(map->trampolines);
	if (!map->file)
		return;
	maps->path_bytes -= map->file->path_bytes;
	map_file_unref(map->file);
}

/* Takes the references that a copy of MAP in MAPS needs. */
static void hold_map(struct maps *maps, const struct map *map)
{
	if (map->module)
		module_ref(map->module);
	if (map->trampolines)
		trampolines_ref(map->trampolines);
	maps->copied_bytes += copied_bytes(map);
	if (!map->file)
		return;
	maps->path_bytes += map->file->path_bytes;
	map->file->references++;
}

void maps_clear(struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		drop_map(maps, &maps->map[i]);
	maps->count = 0;
	maps->generation++;
}

void maps_free(struct maps *maps)
{
	if (!maps)
		return;
	maps_clear(maps);
	jit_rows_unref(maps->jit_rows);
	free(maps->map);
	free(maps->scratch);
	free(maps);
}

static size_t range_bytes(const struct maps *maps)
{
	return maps->count * (sizeof(*maps->map) + sizeof(struct map_file)) + maps->path_bytes +
	    maps->copied_bytes;
}

static bool has_room(const struct maps *maps, size_t path_bytes)
{
	return !maps->room_bytes ||
	    range_bytes(maps) + sizeof(*maps->map) + sizeof(struct map_file) + path_bytes <= maps->room_bytes;
}

struct maps *maps_copy(const struct maps *maps, pid_t pid, size_t room_bytes)
{
	struct maps *copy = maps_new(maps->store, pid, maps->eager);

	if (!copy)
		return NULL;
	copy->room_bytes = room_bytes;
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->map[i];

		if (!has_room(copy, map->file ? map->file->path_bytes : 0))
			break;
		if (array_reserve(&copy->map, &copy->capacity, copy->count + 1, sizeof(*copy->map)) != 0) {
			maps_free(copy);
			return NULL;
		}
		copy->map[copy->count++] = *map;
		hold_map(copy, map);
	}
	return copy;
}

/* Index of the first range that ends above ADDRESS. */
static size_t first_above(const struct maps *maps, uint64_t address)
{
	return ARRAY_UPPER_BOUND(maps->map, maps->count, end, address);
}

static int reserve(struct maps *maps, size_t more)
{
	return array_reserve(&maps->map, &maps->capacity, maps->count + more, sizeof(*maps->map));
}

static void insert_at(struct maps *maps, size_t index, const struct map *map)
{
	memmove(&maps->map[index + 1], &maps->map[index], (maps->count - index) * sizeof(*map));
	maps->map[index] = *map;
	maps->count++;
}

static void cut_front(struct map *map, uint64_t start)
{
	map->pgoff += start - map->start;
	map->start = start;
}

/* Removes [start, end); there must be room for one more range. */
static void punch(struct maps *maps, uint64_t start, uint64_t end)
{
	size_t first = first_above(maps, start), last;

	if (first < maps->count && maps->map[first].start < start) {
		struct map *map = &maps->map[first];

		if (map->end > end) {
			struct map tail = *map;

			hold_map(maps, &tail);
			cut_front(&tail, end);
			map->end = start;
			insert_at(maps, first + 1, &tail);
			return;
		}
		map->end = start;
		first++;
	}
	for (last = first; last < maps->count && maps->map[last].end <= end; last++)
		drop_map(maps, &maps->map[last]);
	if (last < maps->count && maps->map[last].start < end)
		cut_front(&maps->map[last], end);
	memmove(&maps->map[first], &maps->map[last], (maps->count - last) * sizeof(*maps->map));
	maps->count -= last - first;
}

static bool overlaps(const struct maps *maps, uint64_t start, uint64_t end)
{
	size_t i = first_above(maps, start);

	return i < maps->count && maps->map[i].start < end;
}

int maps_remove(struct maps *maps, uint64_t start, uint64_t len)
{
	uint64_t end = len > UINT64_MAX - start ? UINT64_MAX : start + len;

	if (!len || !overlaps(maps, start, end))
		return 0;
	if (reserve(maps, 1))
		return -ENOMEM;
	punch(maps, start, end);
	maps->generation++;
	return 0;
}

/* How many bytes may be copied from the process' memory for one file. */
static uint64_t copy_room(const struct maps *maps)
{
	const size_t has = range_bytes(maps);

	if (maps->copies >= MAPS_COPIES_MAX)
		return 0;
	return !maps->room_bytes ? UINT64_MAX : maps->room_bytes > has ? maps->room_bytes - has : 0;
}

/* A range that turned out to be no file's. */
static void forget_file(struct maps *maps, struct map *map)
{
	if (map_is_memory_file(map->file->path)) {
		maps->plain_dev = map->file->dev;
		maps->plain_ino = map->file->ino;
	}
	maps->path_bytes -= map->file->path_bytes;
	map_file_unref(map->file);
	map->file = NULL;
}

/* A file in memory that is known to be no ELF file: a program that makes code maps it many times. */
static bool is_plain(const struct maps *maps, const struct map *map)
{
	return map->file && map->file->ino && map->file->ino == maps->plain_ino &&
	    map->file->dev == maps->plain_dev && map_is_memory_file(map->file->path);
}

static void open_map(struct maps *maps, struct map *map)
{
	if (is_plain(maps, map)) {
		map->opened = true;
		map->kind = MAP_KIND_ANON;
	} else {
		map_open(map, maps->store, maps->pid, copy_room(maps), &maps->copies);
		maps->copied_bytes += map->module ? map->module->file.copied.bytes : 0;
	}
	if (map->file && map->kind == MAP_KIND_ANON)
		forget_file(maps, map);
}

static int add_range(struct maps *maps, const struct map_range *range, const char *path, enum map_kind kind)
{
	struct map map = {.start = range->start, .pgoff = range->pgoff, .prot = range->prot, .kind = kind};

	if (!range->len || range->len > UINT64_MAX - range->start)
		return -EINVAL;
	map.end = range->start + range->len;
	if (!(range->prot & PROT_EXEC))
		return maps_remove(maps, range->start, range->len);
	if (maps->count + 2 > MAPS_MAX || !has_room(maps, strlen(path)))
		return -ENOSPC;
	if (reserve(maps, 2))
		return -ENOMEM;
	if (map.kind == MAP_KIND_FILE) {
		if (maps->path_bytes + strlen(path) >= MAPS_PATH_BYTES_MAX)
			return -ENOSPC;
		map.file = map_file_new(range, path);
		if (!map.file)
			return -ENOMEM;
		maps->path_bytes += map.file->path_bytes;
	}
	/* Opened before the replaced range is removed: that may be the same module. */
	if (maps->eager)
		open_map(maps, &map);
	punch(maps, map.start, map.end);
	insert_at(maps, first_above(maps, map.start), &map);
	maps->generation++;
	return 0;
}

int maps_share(struct maps *maps, const struct map *map)
{
	if (overlaps(maps, map->start, map->end))
		return 0;
	if (maps->count + 1 > MAPS_MAX || !has_room(maps, map->file ? map->file->path_bytes : 0))
		return -ENOSPC;
	if (reserve(maps, 1))
		return -ENOMEM;
	hold_map(maps, map);
	insert_at(maps, first_above(maps, map->start), map);
	maps->generation++;
	return 0;
}

int maps_add(struct maps *maps, const struct map_range *range)
{
	const char *path = range->around ? range->around->path : range->path ? range->path : "";
	enum map_kind kind = maps_kind_of(path);
	char *full = NULL;
	int err;

	/* A program that lists its own ranges may name a file as it was opened, "./server", in an unknown
	 * folder. The folder is mostly ours, and the file is verified later. */
	if (range->listed && kind == MAP_KIND_ANON && path[0]) {
		kind = MAP_KIND_FILE;
		full = path[0] == '/' ? NULL : realpath(path, NULL);
	}
	err = add_range(maps, range, full ? full : path, kind);
	free(full);
	return err;
}

bool maps_are_current(const struct maps *maps)
{
	uint64_t hash;

	return maps->read_generation && maps->read_generation == maps->generation &&
	    maps_read_lines(maps->pid, NULL, NULL, &hash) == 0 && hash == maps->read_hash;
}

/* The old ranges stay if the file cannot be opened. */
struct replacing {
	struct maps *maps;
	bool begun;
};

static int replace(void *context, const struct map_range *range)
{
	struct replacing *replacing = context;

	if (!replacing->begun)
		maps_clear(replacing->maps);
	replacing->begun = true;
	return maps_add(replacing->maps, range);
}

int maps_read_proc(struct maps *maps)
{
	struct replacing replacing = {.maps = maps};
	uint64_t hash = 0;
	const int err = maps_read_lines(maps->pid, replace, &replacing, &hash);

	if (!err && !replacing.begun)
		maps_clear(maps);
	maps->read_hash = hash;
	maps->read_generation = err ? 0 : maps->generation;
	return err;
}

const struct map *maps_find(const struct maps *maps, uint64_t address)
{
	size_t i = first_above(maps, address);

	return i < maps->count && maps->map[i].start <= address ? &maps->map[i] : NULL;
}

const struct map *maps_module(struct maps *maps, uint64_t address)
{
	struct map *map = (struct map *)maps_find(maps, address);

	if (map && !map->opened)
		open_map(maps, map);
	return map;
}

void maps_set_jit_rows(struct maps *maps, struct jit_rows *rows)
{
	const uint64_t version = rows ? jit_rows_version(rows) : 0;

	if (rows == maps->jit_rows && version == maps->jit_rows_version)
		return;
	if (rows)
		jit_rows_ref(rows);
	jit_rows_unref(maps->jit_rows);
	maps->jit_rows = rows;
	maps->jit_rows_version = version;
	maps->scratch_generation = 0;
}

/* Only code that nobody can write any more is looked at: other code may still change. */
static const struct cfi_rule *known_code_rule(
    struct maps *maps, struct map *map, uint64_t address, uint16_t e_machine)
{
	if (map->prot != (PROT_READ | PROT_EXEC) || !maps->pid)
		return &cfi_no_rule;
	if (!map->trampolines) {
		if (!cfi_work_allows(&maps->cfi_work))
			return &cfi_unread_rule;
		throttle_spend(&maps->cfi_work, TRAMPOLINES_READ_COST);
		map->trampolines = trampolines_read(maps->pid, map->start, map->end);
		maps->copied_bytes += trampolines_bytes(map->trampolines);
	}
	if (!map->trampolines)
		return &cfi_unread_rule;
	return trampolines_rule(map->trampolines, address, e_machine);
}

const struct cfi_rule *maps_generated_rule(
    struct maps *maps, const struct map *found, uint64_t address, uint16_t e_machine)
{
	if (found->kind != MAP_KIND_ANON)
		return &cfi_no_rule;
	const struct cfi_rule *known = known_code_rule(maps, (struct map *)found, address, e_machine);
	if (known->kind != CFI_NONE || !maps->jit_rows)
		return known;
	const struct cfi_rule *told = jit_rows_rule(maps->jit_rows, address, e_machine, &maps->cfi_work);
	return told == &cfi_no_rule ? known : told;
}

size_t maps_count(const struct maps *maps)
{
	return maps->count;
}

const struct map *maps_at(const struct maps *maps, size_t index)
{
	return &maps->map[index];
}

size_t maps_bytes(const struct maps *maps)
{
	return sizeof(*maps) + range_bytes(maps) + (maps->capacity - maps->count) * sizeof(*maps->map) +
	    maps_scratch_bytes(maps) + jit_rows_bytes(maps->jit_rows);
}

void maps_set_room(struct maps *maps, size_t bytes)
{
	maps->room_bytes = bytes;
}

struct modules *maps_store(const struct maps *maps)
{
	return maps->store;
}

struct throttle *maps_cfi_work(struct maps *maps)
{
	return &maps->cfi_work;
}

size_t maps_scratch_bytes(const struct maps *maps)
{
	return maps->scratch ? maps->scratch_len : 0;
}

void *maps_scratch(struct maps *maps, size_t len)
{
	if (!maps->scratch || maps->scratch_len != len) {
		if (maps->scratch_asked++ < SCRATCH_AFTER)
			return NULL;
		free(maps->scratch);
		maps->scratch = calloc(1, len);
		maps->scratch_len = len;
	} else if (maps->scratch_generation != maps->generation) {
		memset(maps->scratch, 0, len);
	}
	maps->scratch_generation = maps->generation;
	return maps->scratch;
}

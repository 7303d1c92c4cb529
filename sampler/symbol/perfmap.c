/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/perfmap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pprof/table/array.h"
#include "sampler/symbol/string_pool.h"

enum { RANGES_MAX = 1 << 22 };

struct range {
	uint64_t start, end;
	const char *name;
	uint32_t order; /* line in the file: later lines win */
};

struct perfmap {
	struct string_pool *names;
	struct range *ranges; /* after parsing: sorted, disjoint */
	size_t count, capacity;
};

static bool take_hex(const char **at, const char *end, uint64_t *number)
{
	const char *start = *at;

	*number = 0;
	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] == 'x' || (*at)[1] == 'X'))
		start = *at += 2;
	for (; *at < end; ++*at) {
		char c = **at;
		int digit = c >= '0' && c <= '9' ? c - '0'
		    : c >= 'a' && c <= 'f'       ? c - 'a' + 10
		    : c >= 'A' && c <= 'F'       ? c - 'A' + 10
		                                 : -1;

		if (digit < 0)
			break;
		if (*number >> 60)
			return false;
		*number = *number << 4 | (unsigned)digit;
	}
	return *at > start;
}

static bool take_space(const char **at, const char *end)
{
	const char *start = *at;

	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
	return *at > start;
}

static bool range_push(struct perfmap *map, const struct range *range)
{
	if (array_reserve(&map->ranges, &map->capacity, map->count + 1, sizeof(*map->ranges)) != 0)
		return false;
	map->ranges[map->count++] = *range;
	return true;
}

/* Returns false when out of memory only. */
static bool take_line(struct perfmap *map, const char *at, const char *end)
{
	struct range range = {.order = (uint32_t)map->count};
	uint64_t size_bytes;

	if (end > at && end[-1] == '\r')
		end--;
	if (!take_hex(&at, end, &range.start) || !take_space(&at, end) || !take_hex(&at, end, &size_bytes) ||
	    !take_space(&at, end) || at == end || size_bytes == 0 || range.start + size_bytes < range.start)
		return true;
	range.end = range.start + size_bytes;
	range.name = string_pool_add(
	    map->names, at, end - at < PERFMAP_NAME_MAX ? (size_t)(end - at) : PERFMAP_NAME_MAX);
	return range.name && range_push(map, &range);
}

static int by_start(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/*
 * Cuts overlapping ranges into disjoint ones, each with the name of the latest line over it. Sweep over the
 * starts with a heap of open ranges, the latest on top: O(n log n), and at most 2n pieces.
 */
struct sweep {
	const struct range **heap;
	size_t open;
	struct perfmap *to;
};

static void heap_push(struct sweep *sweep, const struct range *range)
{
	size_t i = sweep->open++;

	for (; i > 0 && sweep->heap[(i - 1) / 2]->order < range->order; i = (i - 1) / 2)
		sweep->heap[i] = sweep->heap[(i - 1) / 2];
	sweep->heap[i] = range;
}

static void heap_pop(struct sweep *sweep)
{
	const struct range *last = sweep->heap[--sweep->open];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < sweep->open; i = child) {
		if (child + 1 < sweep->open && sweep->heap[child + 1]->order > sweep->heap[child]->order)
			child++;
		if (sweep->heap[child]->order < last->order)
			break;
		sweep->heap[i] = sweep->heap[child];
	}
	sweep->heap[i] = last;
}

/*
 * Writes the pieces between `from` and `to`; ranges that end meanwhile are removed when they reach the top of
 * the heap.
 */
static bool sweep_over(struct sweep *sweep, uint64_t from, uint64_t to)
{
	while (sweep->open > 0 && from < to) {
		const struct range *top = sweep->heap[0];
		struct range piece = *top;

		if (top->end <= from) {
			heap_pop(sweep);
			continue;
		}
		piece.start = from;
		piece.end = top->end < to ? top->end : to;
		from = piece.end;
		if (!range_push(sweep->to, &piece))
			return false;
	}
	return true;
}

static bool make_disjoint(struct perfmap *map)
{
	struct perfmap pieces = {0};
	struct sweep sweep = {calloc(map->count + 1, sizeof(*sweep.heap)), 0, &pieces};
	bool ok = sweep.heap != NULL;

	if (map->count > 0)
		qsort(map->ranges, map->count, sizeof(*map->ranges), by_start);
	for (size_t i = 0; i < map->count && ok; i++) {
		uint64_t next = i + 1 < map->count ? map->ranges[i + 1].start : UINT64_MAX;

		heap_push(&sweep, &map->ranges[i]);
		ok = sweep_over(&sweep, map->ranges[i].start, next);
	}
	free(sweep.heap);
	free(map->ranges);
	map->ranges = pieces.ranges;
	map->count = pieces.count;
	map->capacity = pieces.capacity;
	return ok;
}

struct perfmap *perfmap_parse(const char *text, size_t text_bytes)
{
	struct perfmap *map = calloc(1, sizeof(*map));
	const char *end = text + text_bytes;
	bool ok = map && (map->names = string_pool_new());

	for (const char *line = text; ok && line < end && map->count < RANGES_MAX;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		if (!newline)
			break;
		ok = take_line(map, line, newline);
		line = newline + 1;
	}
	if (ok && make_disjoint(map))
		return map;
	perfmap_free(map);
	return NULL;
}

void perfmap_free(struct perfmap *map)
{
	if (!map)
		return;
	string_pool_free(map->names);
	free(map->ranges);
	free(map);
}

size_t perfmap_count(const struct perfmap *map)
{
	return map->count;
}

const char *perfmap_find(const struct perfmap *map, uint64_t addr)
{
	size_t at = ARRAY_UPPER_BOUND(map->ranges, map->count, end, addr);

	return at < map->count && map->ranges[at].start <= addr ? map->ranges[at].name : NULL;
}

static int read_text(int fd, off_t size_bytes, struct perfmap **map)
{
	size_t wanted = size_bytes < PERFMAP_BYTES_MAX ? (size_t)size_bytes : PERFMAP_BYTES_MAX, length = 0;
	char *text = malloc(wanted + 1);
	ssize_t got = 1;

	if (!text)
		return -ENOMEM;
	while (length < wanted && got > 0) {
		got = pread(fd, text + length, wanted - length, (off_t)length);
		length += got > 0 ? (size_t)got : 0;
	}
	*map = got < 0 ? NULL : perfmap_parse(text, length);
	free(text);
	return *map ? 0 : got < 0 ? -EIO : -ENOMEM;
}

int perfmap_open(const struct perf_map_file *file, struct perfmap **map)
{
	struct stat status;
	int fd = perf_map_file_open(file);

	if (fd < 0)
		return fd;
	int error = fstat(fd, &status) == 0 ? read_text(fd, status.st_size, map) : -errno;
	close(fd);
	return error;
}

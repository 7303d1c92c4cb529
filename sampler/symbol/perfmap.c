/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/perfmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pprof/table/array.h"
#include "sampler/symbol/string_pool.h"

enum { CHUNK_BYTES = 1 << 20 };

struct place {
	uint64_t addr;
	const char *name; /* NULL: none yet */
	size_t next;      /* for a place with a name: where to look for one without */
};

struct perfmap {
	struct string_pool *names;
	struct place *places; /* by address */
	size_t count, unnamed;
	bool cut;
};

static int by_addr(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

struct perfmap *perfmap_new(const uint64_t *addrs, size_t count)
{
	struct perfmap *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->names = string_pool_new();
	map->places = calloc(count + 1, sizeof(*map->places));
	if (!map->names || !map->places) {
		perfmap_free(map);
		return NULL;
	}
	map->count = map->unnamed = count;
	for (size_t i = 0; i < count; i++)
		map->places[i].addr = addrs[i];
	qsort(map->places, count, sizeof(*map->places), by_addr);
	return map;
}

void perfmap_free(struct perfmap *map)
{
	if (!map)
		return;
	string_pool_free(map->names);
	free(map->places);
	free(map);
}

bool perfmap_cut(const struct perfmap *map)
{
	return map->cut;
}

const char *perfmap_find(const struct perfmap *map, uint64_t addr)
{
	size_t at = ARRAY_LOWER_BOUND(map->places, map->count, addr, addr);

	return at < map->count && map->places[at].addr == addr ? map->places[at].name : NULL;
}

/* ---- lines */

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

/* The first place without a name from AT on. Halves the way for the next search: a line may cover all places,
 * and there may be millions of such lines. */
static size_t next_unnamed(struct perfmap *map, size_t at)
{
	struct place *places = map->places;

	while (at < map->count && places[at].name) {
		size_t next = places[at].next;

		if (next < map->count && places[next].name)
			places[at].next = places[next].next;
		at = next;
	}
	return at;
}

/* Returns false only if memory is short. */
static bool take_line(struct perfmap *map, const char *at, const char *end)
{
	const char *name = NULL;
	uint64_t start, size_bytes;

	if (end > at && end[-1] == '\r')
		end--;
	if (!take_hex(&at, end, &start) || !take_space(&at, end) || !take_hex(&at, end, &size_bytes) ||
	    !take_space(&at, end) || at == end || size_bytes == 0 || start + size_bytes < start)
		return true;
	for (size_t i = next_unnamed(map, ARRAY_LOWER_BOUND(map->places, map->count, addr, start));
	     i < map->count && map->places[i].addr < start + size_bytes; i = next_unnamed(map, i)) {
		if (!name)
			name = string_pool_add(map->names, at,
			    end - at < PERFMAP_NAME_MAX ? (size_t)(end - at) : PERFMAP_NAME_MAX);
		if (!name)
			return false;
		map->places[i].name = name;
		map->places[i].next = i + 1;
		map->unnamed--;
	}
	return true;
}

int perfmap_take(struct perfmap *map, const char *text, size_t text_bytes)
{
	const char *end = memrchr(text, '\n', text_bytes); /* of the line before */

	while (end && map->unnamed > 0) {
		const char *newline = memrchr(text, '\n', (size_t)(end - text));

		if (!take_line(map, newline ? newline + 1 : text, end))
			return -ENOMEM;
		end = newline;
	}
	return 0;
}

/* ---- the file */

static ssize_t read_at(int fd, char *to, size_t bytes, off_t offset)
{
	size_t length = 0;
	ssize_t got = 1;

	while (length < bytes && got > 0) {
		got = pread(fd, to + length, bytes - length, offset + (off_t)length);
		length += got > 0 ? (size_t)got : 0;
	}
	return got < 0 ? -errno : (ssize_t)length;
}

/* From the end to the beginning: the later line is valid, and the rest does not matter once every address has
 * a name. The line at the beginning of a chunk is read again with the chunk before it. A line longer than a
 * chunk is skipped. */
static int read_backwards(int fd, off_t size_bytes, char *chunk, struct perfmap *map)
{
	off_t low = size_bytes > PERFMAP_BYTES_MAX ? size_bytes - PERFMAP_BYTES_MAX : 0;
	int error = 0;

	for (off_t end = size_bytes, start; end > low && map->unnamed > 0 && !error; end = start) {
		start = end - low > CHUNK_BYTES ? end - CHUNK_BYTES : low;
		ssize_t length = read_at(fd, chunk, (size_t)(end - start), start);
		if (length <= 0)
			return (int)length;
		const char *first = start > 0 ? memchr(chunk, '\n', (size_t)length) : NULL;
		size_t skip = first ? (size_t)(first + 1 - chunk) : 0;
		error = perfmap_take(map, chunk + skip, (size_t)length - skip);
		if (start > low && (ssize_t)skip < length)
			start += (off_t)skip;
	}
	map->cut = low > 0 && map->unnamed > 0;
	return error;
}

int perfmap_read(struct perfmap *map, const struct perf_map_file *file)
{
	struct stat status;
	int fd = perf_map_file_open(file);
	char *chunk = fd < 0 ? NULL : malloc(CHUNK_BYTES);

	if (fd < 0)
		return fd;
	int error = !chunk ? -ENOMEM : fstat(fd, &status) != 0 ? -errno : 0;
	if (!error)
		error = read_backwards(fd, status.st_size, chunk, map);
	free(chunk);
	close(fd);
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/map.h"

#include "sampler/linux/memory_reader.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char memory_file[] = "/memfd:";

enum map_kind maps_kind_of(const char *path)
{
	static const struct {
		const char *prefix;
		enum map_kind kind;
	} names[] = {
	    {"//anon", MAP_KIND_ANON},
	    {"[anon", MAP_KIND_ANON},
	    {"/dev/zero", MAP_KIND_ANON},
	    {"/anon_hugepage", MAP_KIND_ANON},
	    {"/SYSV", MAP_KIND_ANON},
	    {"[vdso]", MAP_KIND_VDSO},
	    {"[stack", MAP_KIND_STACK},
	    {"[heap]", MAP_KIND_HEAP},
	    {"[uprobes]", MAP_KIND_UPROBES},
	    {"[", MAP_KIND_SPECIAL},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(path, names[i].prefix, strlen(names[i].prefix)) == 0)
			return names[i].kind;
	return path[0] == '/' ? MAP_KIND_FILE : MAP_KIND_ANON;
}

bool map_is_memory_file(const char *path)
{
	return strncmp(path, memory_file, strlen(memory_file)) == 0;
}

const char *map_path(const struct map *map)
{
	static const char *const names[] = {
	    [MAP_KIND_FILE] = "",
	    [MAP_KIND_ANON] = "",
	    [MAP_KIND_VDSO] = "[vdso]",
	    [MAP_KIND_STACK] = "[stack]",
	    [MAP_KIND_HEAP] = "[heap]",
	    [MAP_KIND_UPROBES] = "[uprobes]",
	    [MAP_KIND_SPECIAL] = "[special]",
	};

	return map->file ? map->file->path : names[map->kind];
}

/* ---- the file */

struct map_file *map_file_new(const struct map_range *range, const char *path)
{
	const struct map_range *from = range->around ? range->around : range;
	size_t n = strlen(path) + 1;
	struct map_file *file = calloc(1, sizeof(*file) + n);

	if (!file)
		return NULL;
	file->references = 1;
	file->start = from->start;
	file->end = from->start + from->len;
	file->dev = makedev(from->major, from->minor);
	file->ino = from->ino;
	file->pgoff = from->pgoff;
	file->listed = from->listed;
	file->executable = from->prot & PROT_EXEC;
	file->copied = range->around != NULL;
	if (from->build_id && from->build_id_len <= MODULE_BUILD_ID_BYTES) {
		file->build_id_len = from->build_id_len;
		memcpy(file->build_id, from->build_id, from->build_id_len);
	}
	file->path_bytes = (uint32_t)n;
	memcpy(file->path, path, n);
	return file;
}

void map_file_unref(struct map_file *file)
{
	if (--file->references == 0)
		free(file);
}

static struct module *get_module(const struct map_file *file, struct modules *store, pid_t pid,
    uint64_t copy_bytes_max, uint64_t *children)
{
	const struct module_request request = {
	    .pid = pid,
	    .told = true,
	    .start = file->start,
	    .end = file->end,
	    .path = file->path,
	    .build_id = file->build_id_len ? file->build_id : NULL,
	    .build_id_len = file->build_id_len,
	    .dev = file->dev,
	    .ino = file->ino,
	    .listed = file->listed,
	    .pgoff = file->pgoff,
	    .copy_bytes_max = file->copied ? 0 : copy_bytes_max,
	};
	const uint64_t copies = modules_counters(store)->copies;
	struct module *module = module_get(store, &request), *library;

	*children += modules_counters(store)->copies - copies;
	if (module && !module->readable && (library = module_get_library(store, file->path))) {
		module_unref(module);
		module = library;
	}
	return module;
}

/* ---- a copy of a file's code */

enum {
	SPOTS = 8, /* of the range that are compared with the file */
	SPOT_BYTES = 64,
};

struct spots {
	uint64_t start, step;
	unsigned char bytes[SPOTS][SPOT_BYTES];
	int error;
};

/* Runs in a child. */
static void read_spots(pid_t pid, void *result)
{
	struct spots *spots = result;
	char path[PROC_PATH_BYTES];
	const int fd = open(proc_path(path, pid, "mem"), O_RDONLY | O_CLOEXEC);

	spots->error = fd < 0 ? -errno : 0;
	for (unsigned i = 0; i < SPOTS && !spots->error; i++)
		spots->error =
		    regular_file_read(fd, spots->bytes[i], SPOT_BYTES, spots->start + i * spots->step);
	if (fd >= 0)
		close(fd);
}

/* Does the range have the file's code? A program may have patched some of its code. */
static bool has_code_of(const struct map *map, pid_t pid, uint64_t *children)
{
	struct spots spots = {.start = map->start, .step = (map->end - map->start) / SPOTS};
	unsigned equal = 0;

	++*children;
	if (memory_reader_run(read_spots, pid, &spots, sizeof(spots)) != 0 || spots.error)
		return false;
	for (unsigned i = 0; i < SPOTS; i++) {
		unsigned char own[SPOT_BYTES];

		equal += module_read(map->module, own, sizeof(own), map->pgoff + i * spots.step) == 0 &&
		    memcmp(own, spots.bytes[i], sizeof(own)) == 0;
	}
	return 2 * equal > SPOTS;
}

/* Where the range would be in the file, if one executable segment is at least as long. */
static bool find_place(struct map *map)
{
	const uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	const struct module_file *file = &map->module->file;
	uint64_t vaddr;

	if (!module_vaddr(map->module, map->file->pgoff, map->file->executable, &vaddr))
		return false;
	map->bias = map->file->start - vaddr;
	vaddr = map->start - map->bias;
	for (uint32_t i = 0; i < file->segment_count; i++) {
		const struct module_segment *s = &file->segments[i];
		const uint64_t start = s->vaddr & ~page_mask;
		const uint64_t end = (s->vaddr + s->file_bytes + page_mask) & ~page_mask;

		if (!s->executable || vaddr < start || vaddr >= end || map->end - map->start > end - vaddr)
			continue;
		map->pgoff = s->offset + (vaddr - s->vaddr);
		return true;
	}
	return false;
}

void map_open(struct map *map, struct modules *store, pid_t pid, uint64_t copy_bytes_max, uint64_t *children)
{
	uint64_t vaddr = 0;
	bool is_file = true;

	map->opened = true;
	if (map->kind == MAP_KIND_VDSO) {
		map->module = module_get_vdso(store);
		map->pgoff = 0; /* not of a file; MMAP2 does not always report 0 */
	} else if (map->file) {
		map->module = get_module(map->file, store, pid, copy_bytes_max, children);
	}
	if (map->file && map->file->copied) {
		map->has_bias = is_file = map->module && map->module->readable && find_place(map) &&
		    copy_bytes_max && has_code_of(map, pid, children);
	} else {
		map->has_bias = map->module && module_vaddr(map->module, map->pgoff, true, &vaddr);
		map->bias = map->has_bias ? map->start - vaddr : 0;
		if (map->file && map_is_memory_file(map->file->path) && !map->file->listed)
			is_file = map->module && map->module->readable;
	}
	if (is_file)
		return;
	module_unref(map->module);
	map->module = NULL;
	map->has_bias = false;
	map->kind = MAP_KIND_ANON;
}

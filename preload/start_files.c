/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/start_files.h"

#include "preload/lookup.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { OBJECTS = 256 }; /* of a program that runs already: those beyond may come and go */

struct object {
	const ElfW(Phdr) * segments;
	size_t segment_count;
	uintptr_t base;
	const ElfW(Dyn) * dynamic;
	const char *strings, *file_name, *shared_name;
	bool stays, visited;
};

struct objects {
	struct object *of;
	size_t count;
};

static void add_range(struct region_header *header, uint64_t start, uint64_t end)
{
	uint32_t count = header->start_files;

	if (count >= REGION_START_FILES)
		return;
	header->start_file[count] = (struct region_range){start, end};
	header->start_files = count + 1;
}

static void add_code(
    struct region_header *header, uintptr_t base, const ElfW(Phdr) * segments, size_t segment_count)
{
	const uint64_t page = REGION_PAGE_BYTES - 1;

	for (size_t i = 0; i < segment_count; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X)
			add_range(header, (base + segments[i].p_vaddr) & ~page,
			    (base + segments[i].p_vaddr + segments[i].p_filesz + page) & ~page);
}

static int add_all(struct dl_phdr_info *info, size_t size, void *argument)
{
	add_code(argument, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
	return 0;
}

/* ---- of a program that runs */

/* glibc relocates the addresses in the dynamic section, musl does not. */
static void read_dynamic(struct object *object)
{
	size_t shared_name = 0;

	for (size_t i = 0; i < object->segment_count; i++)
		if (object->segments[i].p_type == PT_DYNAMIC)
			object->dynamic = (const void *)(object->base + object->segments[i].p_vaddr);
	for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++) {
		uintptr_t value = entry->d_un.d_ptr;

		if (entry->d_tag == DT_STRTAB)
			object->strings = (const char *)(value < object->base ? object->base + value : value);
		else if (entry->d_tag == DT_SONAME)
			shared_name = value;
	}
	if (object->strings && shared_name)
		object->shared_name = object->strings + shared_name;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct objects *objects = argument;

	if (objects->count == OBJECTS)
		return 1;
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	struct object *object = &objects->of[objects->count++];
	*object = (struct object){
	    .segments = info->dlpi_phdr,
	    .segment_count = info->dlpi_phnum,
	    .base = info->dlpi_addr,
	    .file_name = slash    ? slash + 1
	        : info->dlpi_name ? info->dlpi_name
	                          : "",
	    .stays = lookup_is_ours(info), /* linked with -z nodelete */
	};
	read_dynamic(object);
	return 0;
}

static bool has_name(const struct object *object, const char *name)
{
	const char *slash = strrchr(name, '/');

	return strcmp(object->file_name, slash ? slash + 1 : name) == 0 ||
	    (object->shared_name && strcmp(object->shared_name, name) == 0);
}

/* The first of that name. */
static void mark(const struct objects *objects, const char *name)
{
	for (size_t i = 0; i < objects->count; i++)
		if (has_name(&objects->of[i], name)) {
			objects->of[i].stays = true;
			return;
		}
}

static void mark_needed(const struct objects *objects, struct object *object)
{
	object->visited = true;
	for (const ElfW(Dyn) *entry = object->dynamic; entry && object->strings && entry->d_tag != DT_NULL;
	     entry++)
		if (entry->d_tag == DT_NEEDED)
			mark(objects, object->strings + entry->d_un.d_val);
}

/* Each object is visited once; it may need one that comes before it. */
static void mark_all(const struct objects *objects)
{
	bool found = objects->count > 0;

	if (found)
		objects->of[0].stays = true; /* the program */
	while (found) {
		found = false;
		for (size_t i = 0; i < objects->count; i++)
			if (objects->of[i].stays && !objects->of[i].visited) {
				mark_needed(objects, &objects->of[i]);
				found = true;
			}
	}
}

/* All of it in one call of dl_iterate_phdr, which holds the loader's lock: nothing is unmapped meanwhile. The
 * lock is recursive. */
static int add_needed(struct dl_phdr_info *info, size_t size, void *argument)
{
	static struct object of[OBJECTS];
	struct objects objects = {.of = of};

	lookup_each(add_object, &objects);
	mark_all(&objects);
	for (size_t i = 0; i < objects.count; i++)
		if (of[i].stays)
			add_code(argument, of[i].base, of[i].segments, of[i].segment_count);
	return 1;
}

void start_files_write(struct region_header *header, bool runs)
{
	header->start_files = 0;
	lookup_each(runs ? add_needed : add_all, header);
}
